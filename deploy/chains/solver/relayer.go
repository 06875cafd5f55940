package solver

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/pkg/client"
)

// unrelayedReference is the reference of signed intents that are not relayed, so that somebody else can.
const unrelayedReference = "relay-myself"

const (
	// relayInterval is the pause between two requests for a signed intent's transaction, because a key may make 50 requests a minute.
	relayInterval = 3 * time.Second
	// maxRelayPause bounds the pause before a transaction that would revert is tried again.
	maxRelayPause = time.Minute
)

// signedIntent is an intent whose user signs in place of sending a transaction, and which is not on a chain yet.
type signedIntent struct {
	id        string
	notBefore time.Time
	refusals  int
}

// relay sends the transactions of intents that their users have signed, from the solver's own account, until the context ends. Anybody can do
// that: the signature says who pays, and to whom.
func (s *solver) relay(ctx context.Context) {
	state := health{log: s.log.With("part", "relay")}
	for {
		var err error
		if intent := s.feed.signedDue(time.Now()); intent != nil {
			err = s.relayIntent(ctx, intent)
		}
		if !sleep(ctx, state.report(ctx, err, relayInterval)) {
			return
		}
	}
}

// relayIntent sends the transaction of an intent if its user has signed. It returns the errors of the API that may pass.
func (s *solver) relayIntent(ctx context.Context, intent *signedIntent) error {
	log := s.log.With("transfer_id", intent.id)
	relay, err := s.feed.transfers.Relay(ctx, intent.id)
	switch {
	case errors.Is(err, client.CodeNotSigned):
		intent.notBefore = time.Now().Add(relayInterval)
		return nil
	case errors.Is(err, client.CodeStatusConflict), errors.Is(err, client.CodeNotFound):
		s.feed.forgetSigned(intent.id)
		return nil
	case err != nil:
		return fmt.Errorf("ask for the transaction of a signed intent: %w", err)
	}
	hash, err := s.sendRelay(ctx, relay.Tx)
	if skipped, ok := errors.AsType[*skippedError](err); ok {
		log.Info("signed intent is not relayed", "reason", skipped.reason)
		s.feed.forgetSigned(intent.id)
		return nil
	}
	if err != nil { // such as a missing allowance, which may come
		intent.notBefore = time.Now().Add(min(relayInterval<<min(intent.refusals, 10), maxRelayPause))
		if intent.refusals++; intent.refusals == 1 {
			reason, _ := refusal(err)
			log.Warn("signed intent cannot be relayed, is tried again", "reason", reason, "error", err)
		}
		return nil
	}
	s.feed.forgetSigned(intent.id)
	log.Info("signed intent was relayed", "hash", hash)
	if _, err := s.feed.transfers.Report(ctx, intent.id, hash.Hex()); err != nil {
		log.Warn("the hash was not reported, the service finds it on the chain", "hash", hash, "error", err)
	}
	return nil
}

func (s *solver) sendRelay(ctx context.Context, tx client.RelayTransaction) (common.Hash, error) {
	if tx.Value != "0" {
		return common.Hash{}, &skippedError{"its transaction has a value"}
	}
	for _, c := range s.chains {
		if c.id.Cmp(big.NewInt(tx.ChainID)) == 0 {
			return c.execute(ctx, "a signed intent", common.HexToAddress(tx.To), nil, common.FromHex(tx.Data))
		}
	}
	return common.Hash{}, &skippedError{fmt.Sprintf("its chain %d is unknown", tx.ChainID)}
}

// signedDue returns the signed intent that has waited longest, nil if none is due or the feed is not read completely.
func (f *feed) signedDue(now time.Time) (due *signedIntent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.upToDate {
		return nil
	}
	for _, intent := range f.signed {
		if !intent.notBefore.After(now) && (due == nil || intent.notBefore.Before(due.notBefore)) {
			due = intent
		}
	}
	return due
}

func (f *feed) forgetSigned(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.signed, id)
}

// keepSigned takes the signed intents of an event. The caller holds the mutex.
func (f *feed) keepSigned(intent *client.TransferEvent, reference string) {
	if intent.Signing == nil || intent.Status != client.StatusCreated || reference == unrelayedReference {
		delete(f.signed, intent.ID)
		return
	}
	if f.signed[intent.ID] == nil {
		f.signed[intent.ID] = &signedIntent{id: intent.ID, notBefore: time.Now()}
	}
}
