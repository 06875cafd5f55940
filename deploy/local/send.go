package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"intents.internal/deploy/walk"
	"intents.internal/pkg/client"
)

// sender sends the transactions of intents to the local chains of a running stack, in place of a wallet.
type sender struct {
	env  map[string]string
	api  *client.Client
	http *http.Client
	out  io.Writer
	// waits is told of each wait for a limit.
	waits func(time.Duration)
}

// newSender returns the sender for the demo account, whose test key is in the environment of the stack.
func newSender(env map[string]string, out io.Writer) (*sender, error) {
	direct := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{}} // ignores the proxies of the environment
	api, err := client.New(env["GATEWAY_URL"], env["TEST_KEY"], client.WithHTTPClient(direct))
	if err != nil {
		return nil, fmt.Errorf("read the environment of the running stack: %w", err)
	}
	s := &sender{env: env, api: api, http: direct, out: out}
	s.waits = func(wait time.Duration) { s.printf("waits %s, as the key has made as many requests as it may\n", wait) }
	return s, nil
}

// once makes a call of the client that it tries once, again while it is over the limit of the key.
func (s *sender) once(ctx context.Context, call func() (*client.Transfer, error)) (intent *client.Transfer, err error) {
	err = walk.UntilAllowed(ctx, s.waits, func() (time.Duration, error) {
		intent, err = call()
		return walk.WaitOfError(err), err
	})
	return intent, err
}

// send sends the transaction of an intent, or those of the intents of a batch, and reports its hash.
func (s *sender) send(ctx context.Context, id string) error {
	intent, err := s.read(ctx, id)
	if errors.Is(err, errNoIntent) {
		if batch, notFound := s.api.Batches.Get(ctx, id); notFound == nil {
			return s.sendBatch(ctx, batch)
		}
	}
	if err != nil {
		return err
	}
	return s.sendIntent(ctx, intent)
}

// sendBatch sends the transactions of a batch's intents one after the other, as a wallet does that cannot execute several calls at once.
func (s *sender) sendBatch(ctx context.Context, batch *client.Batch) error {
	for n, item := range batch.Transfers {
		intent, err := s.read(ctx, item.ID)
		if err == nil {
			s.printf("\nintent %d of %d, %s:\n", n+1, len(batch.Transfers), item.ID)
			err = s.sendIntent(ctx, intent)
		}
		if err != nil {
			return err
		}
	}
	s.printf("\nhow many of them are in each status:\n")
	s.printf("\n  curl -s %s/v2/batches/%s -H 'x-api-key: %s'\n", s.env["GATEWAY_URL"], batch.ID, s.env["TEST_KEY"])
	return nil
}

func (s *sender) sendIntent(ctx context.Context, intent *client.Transfer) error {
	if intent.Signing != nil {
		return s.signIntent(ctx, intent)
	}
	if intent.Status != client.StatusCreated || intent.Tx == nil {
		return fmt.Errorf("the %s %s is %s: only an intent that is created, before its deadline, is sent", intent.Type, intent.ID, intent.Status)
	}
	node, err := s.node(ctx, intent.Tx.ChainID)
	if err != nil {
		return err
	}
	if err := s.checkBalance(ctx, intent, node); err != nil {
		return err
	}
	hash, err := s.sendCalls(ctx, node, intent.Tx)
	if err != nil {
		return err
	}
	reported, err := s.once(ctx, func() (*client.Transfer, error) { return s.api.Transfers.Report(ctx, intent.ID, hash) })
	if err != nil {
		return fmt.Errorf("report the hash %s: %w", hash, hint(err))
	}
	next := "confirmed"
	switch {
	case intent.Type == client.TypeTransfer:
	case intent.Reference != nil && *intent.Reference == "refund-me" && intent.Order != nil: // the demonstration solver does not fill it
		next = "confirmed; from " + time.Unix(intent.Order.Expires, 0).Format(time.TimeOnly) + " on the same command with --refund gets the money back"
	default:
		next = "confirmed and then filled"
	}
	s.printf("reported the last hash: the %s is %s, and soon %s. Its events:\n", intent.Type, reported.Status, next)
	s.printf("\n  curl -s \"%s/v2/events?wait=25\" -H 'x-api-key: %s'\n", s.env["GATEWAY_URL"], s.env["TEST_KEY"])
	return nil
}

// refund sends the transaction that refunds an order. Core learns of it from the chain, so it is not reported.
func (s *sender) refund(ctx context.Context, id string) error {
	intent, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	refund, err := s.api.Transfers.Refund(ctx, intent.ID)
	if errors.Is(err, client.CodeNotRefundable) {
		return fmt.Errorf("the %s %s is %s and not refundable now: an order is once it is confirmed, has expired and nobody has filled it",
			intent.Type, intent.ID, intent.Status)
	}
	if err != nil {
		return fmt.Errorf("ask for the refund of %s: %w", intent.ID, hint(err))
	}
	node, err := s.node(ctx, refund.Tx.ChainID)
	if err != nil {
		return err
	}
	if _, err := s.sendCalls(ctx, node, &refund.Tx); err != nil {
		return err
	}
	s.printf("the settler has returned the money: the %s is refunded within seconds:\n", intent.Type)
	s.printf("\n  curl -s %s/v2/transfers/%s -H 'x-api-key: %s'\n", s.env["GATEWAY_URL"], intent.ID, s.env["TEST_KEY"])
	return nil
}

var errNoIntent = errors.New("the demo account has no intent")

// read reads an intent by its id or order id.
func (s *sender) read(ctx context.Context, id string) (*client.Transfer, error) {
	intent, err := s.api.Transfers.Get(ctx, id)
	if failure, ok := errors.AsType[*client.Error](err); ok && (failure.Status == http.StatusNotFound || failure.Status == http.StatusBadRequest) {
		return nil, fmt.Errorf("%w with the id or order id %s", errNoIntent, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read the intent %s: %w", id, hint(err))
	}
	return intent, nil
}

// hint adds to the error of a request without a response what is probably the reason.
func hint(err error) error {
	if failure, ok := errors.AsType[*client.Error](err); ok && failure.Status == 0 {
		return fmt.Errorf("the gateway does not answer, so the stack is probably not running any more: %w", err)
	}
	return err
}

// node is the local node of a chain, which answers for that chain.
func (s *sender) node(ctx context.Context, chain int64) (node, error) {
	address := s.env[fmt.Sprintf("CHAIN_%d_RPC_URL", chain)]
	if address == "" {
		return node{}, fmt.Errorf("eip155:%d is no local chain of this stack: sign and send the intent's tx with a wallet, and report its hash", chain)
	}
	n := node{address, s.http}
	var id string
	if err := n.call(ctx, &id, "eth_chainId"); err != nil {
		next := "the stack starts it again within seconds"
		if s.env["CHAINS_PID"] == "" {
			next = "the local chains are still being built or started; the output of the stack says when they are ready"
		}
		return node{}, fmt.Errorf("the local chain eip155:%d at %s: %w; %s", chain, address, err, next)
	}
	if want := fmt.Sprintf("0x%x", chain); id != want {
		return node{}, fmt.Errorf("%s serves chain %s, not %s", address, id, want)
	}
	return n, nil
}

// checkBalance returns an error if the sender has too little of the source token.
func (s *sender) checkBalance(ctx context.Context, intent *client.Transfer, node node) error {
	preflight, err := s.api.Transfers.Preflight(ctx, intent.ID)
	if err != nil {
		return fmt.Errorf("check the intent before it is sent: %w", hint(err))
	}
	for _, check := range preflight.Checks {
		if check.Name == client.CheckBalance && !check.OK {
			return fmt.Errorf("%s\n%s", check.Detail, faucetHint(node, address(intent.Source.Account)))
		}
	}
	return nil
}

// sendCalls sends the calls one after the other and returns the hash of the last.
func (s *sender) sendCalls(ctx context.Context, node node, tx *client.Transaction) (hash string, err error) {
	steps, err := node.steps(ctx, tx)
	if err != nil {
		return "", err
	}
	return s.sendSteps(ctx, node, steps, tx.From, tx.ChainID)
}

func (s *sender) sendSteps(ctx context.Context, node node, steps []step, from string, chain int64) (hash string, err error) {
	for n, step := range steps {
		hash, err = node.send(ctx, transaction{from, step.To, step.Value, step.Data})
		if err != nil {
			return "", explain(err, node, from, fmt.Sprintf("transaction %d of %d to %s", n+1, len(steps), step.To))
		}
		s.printf("%-9s %s (transaction %d of %d on eip155:%d)\n", step.done, hash, n+1, len(steps), chain)
	}
	return hash, nil
}

// explain adds advice to the error of a transaction.
func explain(err error, node node, from, attempted string) error {
	err = fmt.Errorf("send %s: %w", attempted, err)
	var refused *rpcError
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case strings.Contains(refused.Message, "insufficient funds"):
		return fmt.Errorf("%w\n%s", err, faucetHint(node, from))
	case strings.Contains(refused.Message, "unknown account"):
		return fmt.Errorf("%w\n%s is none of the chain's unlocked accounts, which eth_accounts lists: send the intent's tx with its own wallet", err, from)
	}
	return err
}

// faucetHint says how to fund an account.
func faucetHint(node node, account string) string {
	return fmt.Sprintf("fund %s with ether and test tokens:\n\n  curl -s %s -H 'content-type: application/json' "+
		`-d '{"jsonrpc": "2.0", "id": 1, "method": "faucet_fund", "params": [%q]}'`, account, node.url, account)
}

func (s *sender) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }
