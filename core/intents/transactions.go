package intents

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// Observation is a transaction of an intent with the state of the watcher of its chain.
type Observation struct {
	AccountID, TransferID uuid.UUID
	transfer.Transaction
	// DueAt is when the watcher looks the transaction up next, zero for never.
	DueAt time.Time
	// UnknownSince is when a provider first did not know the transaction, zero while one knows it.
	UnknownSince time.Time
}

// TransactionKey identifies a transaction of an intent.
type TransactionKey struct {
	AccountID, TransferID uuid.UUID
	Chain                 caip.ChainID
	Hash                  common.Hash
	Role                  transfer.Role
}

// Key is the primary key.
func (o Observation) Key() TransactionKey {
	return TransactionKey{o.AccountID, o.TransferID, o.Chain, o.Hash, o.Role}
}

func (o Observation) transferKey() TransferKey {
	return TransferKey{AccountID: o.AccountID, ID: o.TransferID}
}

type transactionRow struct {
	bun.BaseModel `bun:"table:transactions,alias:transactions"`

	AccountID    uuid.UUID      `bun:"account_id,pk"`
	TransferID   uuid.UUID      `bun:"transfer_id,pk"`
	ChainID      string         `bun:"chain_id,pk"`
	Hash         []byte         `bun:"hash,pk"`
	Role         transfer.Role  `bun:"role,pk"`
	State        transfer.State `bun:"state"`
	Reported     bool           `bun:"reported"`
	BlockNumber  *uint64        `bun:"block_number"`
	BlockHash    []byte         `bun:"block_hash"`
	LogIndex     *int64         `bun:"log_index"`
	ConfirmedAt  time.Time      `bun:"confirmed_at,nullzero"`
	Sender       []byte         `bun:"sender"`
	Nonce        *string        `bun:"nonce"`
	SeenAt       time.Time      `bun:"seen_at"`
	DueAt        time.Time      `bun:"due_at,nullzero"`
	UnknownSince time.Time      `bun:"unknown_since,nullzero"`
	// DisputedSince is written by DisputeTransactions alone.
	DisputedSince time.Time `bun:"disputed_since,nullzero"`
	// Found is kept of attempts that failed.
	Found string `bun:"found,nullzero"`
}

// transactionColumns are those of transactionRow. A later version may add others.
const transactionColumns = `transactions.account_id, transfer_id, transactions.chain_id, hash, role, state, reported, block_number, block_hash,
	log_index, confirmed_at, sender, nonce, seen_at, due_at, unknown_since, disputed_since, found`

func newTransactionRow(o Observation, now time.Time) transactionRow {
	row := transactionRow{
		AccountID: o.AccountID, TransferID: o.TransferID, ChainID: o.Chain.String(), Hash: o.Hash.Bytes(), Role: o.Role,
		State: o.State, Reported: o.Reported, SeenAt: o.SeenAt, DueAt: inSteps(o.DueAt, now), UnknownSince: o.UnknownSince,
	}
	if o.SeenAt.IsZero() {
		row.SeenAt = now
	}
	if o.Block != nil {
		row.BlockNumber, row.BlockHash = &o.Block.Number, o.Block.Hash.Bytes()
	}
	if o.Failed() {
		row.Found = o.Found
	}
	if o.State == transfer.Mined {
		row.LogIndex = &o.LogIndex
	}
	if o.Confirmed {
		row.ConfirmedAt = now
	}
	if o.Sender != nil {
		nonce := strconv.FormatUint(o.Nonce, 10)
		row.Sender, row.Nonce = o.Sender.Bytes(), &nonce
	}
	return row
}

func (r transactionRow) observation() (Observation, error) {
	chain, err := caip.ParseChainID(r.ChainID)
	if err != nil {
		return Observation{}, fmt.Errorf("read a transaction of transfer %s: %w", r.TransferID, err)
	}
	o := Observation{
		AccountID: r.AccountID, TransferID: r.TransferID, DueAt: r.DueAt, UnknownSince: r.UnknownSince,
		Transaction: transfer.Transaction{
			Role: r.Role, Chain: chain, Hash: common.Hash(r.Hash), State: r.State, Reported: r.Reported,
			Confirmed: !r.ConfirmedAt.IsZero(), Disputed: r.ConfirmedAt.IsZero() && !r.DisputedSince.IsZero(), SeenAt: r.SeenAt.UTC(), Found: r.Found,
		},
	}
	if r.BlockNumber != nil {
		o.Block = &transfer.Block{Number: *r.BlockNumber, Hash: common.Hash(r.BlockHash)}
	}
	if r.LogIndex != nil {
		o.LogIndex = *r.LogIndex
	}
	if r.Nonce != nil {
		sender := common.Address(r.Sender)
		if o.Nonce, err = strconv.ParseUint(*r.Nonce, 10, 64); err != nil {
			return Observation{}, fmt.Errorf("read the nonce of a transaction of transfer %s: %w", r.TransferID, err)
		}
		o.Sender = &sender
	}
	return o, nil
}

func observations(rows []transactionRow) ([]Observation, error) {
	read := make([]Observation, len(rows))
	for n, row := range rows {
		var err error
		if read[n], err = row.observation(); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// Transactions reads the transactions of one of an account's intents, oldest first.
func (s *Store) Transactions(ctx context.Context, accountID, transferID uuid.UUID) ([]transfer.Transaction, error) {
	var rows []transactionRow
	err := s.db.NewSelect().Model(&rows).Where("account_id = ? AND transfer_id = ?", accountID, transferID).
		Order("seen_at", "chain_id", "hash", "role").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the transactions of transfer %s: %w", transferID, err)
	}
	read, err := observations(rows)
	if err != nil {
		return nil, err
	}
	return transactionsOf(read), nil
}

// dueFirst is the DueAt of a new attempt: it is before all others.
var dueFirst = time.Unix(0, 0).UTC()

// TransferHistory reads the transactions of an intent. An intent in status created has none and needs no query.
func (s *Store) TransferHistory(ctx context.Context, intent *transfer.Intent) (transfer.History, error) {
	histories, err := s.TransferHistories(ctx, []*transfer.Intent{intent})
	return histories[intent.ID], err
}

// TransferHistories reads the transactions of intents of one account, with a query for each source chain. An intent without a history is in
// status created.
func (s *Store) TransferHistories(ctx context.Context, intents []*transfer.Intent) (map[uuid.UUID]transfer.History, error) {
	of := map[caip.ChainID][]uuid.UUID{}
	for _, i := range intents {
		if i.Status != transfer.Created {
			of[i.Source.Account.Chain] = append(of[i.Source.Account.Chain], i.ID)
		}
	}
	histories := map[uuid.UUID]transfer.History{}
	for source, ids := range of {
		if err := s.readHistories(ctx, histories, intents[0].AccountID, source, ids); err != nil {
			return nil, err
		}
	}
	return histories, nil
}

// readHistories adds the histories of intents that have one source chain.
func (s *Store) readHistories(ctx context.Context, histories map[uuid.UUID]transfer.History, accountID uuid.UUID, source caip.ChainID, ids []uuid.UUID) error {
	var rows []struct {
		transactionRow `bun:",extend"`

		Head   uint64    `bun:"head_number,nullzero"`
		Final  uint64    `bun:"final_block,nullzero"`
		ReadAt time.Time `bun:"read_at,nullzero"`

		SourceReadUntil time.Time `bun:"source_read_until,nullzero"`
	}
	err := s.db.NewSelect().Model(&rows).ColumnExpr(transactionColumns+", head_number, final_block, read_at").
		ColumnExpr("(SELECT complete_until FROM watched_chains WHERE chain_id = ?) AS source_read_until", source.String()).
		Join("LEFT JOIN watched_chains ON watched_chains.chain_id = transactions.chain_id").
		Where("account_id = ? AND transfer_id IN (?)", accountID, bun.List(ids)).
		OrderExpr("seen_at, transactions.chain_id, hash, role").Scan(ctx)
	if err != nil {
		return fmt.Errorf("read the history of %d transfers: %w", len(ids), err)
	}
	for _, row := range rows {
		o, err := row.observation()
		if err != nil {
			return err
		}
		history, found := histories[o.TransferID]
		if !found {
			history.Heights = map[caip.ChainID]transfer.Heights{}
		}
		history.Transactions = append(history.Transactions, o.Transaction)
		history.SourceReadUntil = row.SourceReadUntil
		if !row.ReadAt.IsZero() {
			history.Heights[o.Chain] = transfer.Heights{Head: row.Head, Final: row.Final}
		}
		histories[o.TransferID] = history
	}
	return nil
}

// maxAttempts bounds how many transactions a client may report for one intent.
const maxAttempts = 50

// Reported is an intent after the report of a transaction.
type Reported struct {
	*transfer.Intent
	// Added is set if the transaction is new.
	Added bool
}

// ReportTransaction records an attempt that a client reports for intents of one account, and returns the updated intents in the order of their
// ids. The same hash again changes nothing, unless the attempt has failed or was dropped: then it is looked up again. It writes nothing if one
// intent cannot take it, and returns ErrTransferNotFound, or a *BatchError of *StatusError by the place of each in ids.
func (s *Store) ReportTransaction(
	ctx context.Context, grant access.Grant, accountID uuid.UUID, ids []uuid.UUID, hash common.Hash,
) (reported []Reported, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	keys := make([]TransferKey, len(ids))
	for n, id := range ids {
		keys[n] = TransferKey{AccountID: accountID, ID: id}
	}
	var events []transfer.Event
	err = s.InTx(ctx, grant.Turn(ids...), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, access.Within(tx.db), accountID); err != nil {
			return err
		}
		locked, err := tx.lockTransfers(ctx, keys)
		switch {
		case err != nil:
			return err
		case len(locked) < len(keys):
			return ErrTransferNotFound
		}
		reported, events, err = tx.report(ctx, locked, hash)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.CountTransitions(events)
	return reported, nil
}

// report writes an attempt of locked intents.
func (tx Tx) report(ctx context.Context, locked []*transfer.Intent, hash common.Hash) (reported []Reported, events []transfer.Event, err error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, nil, err
	}
	keys := make([]TransferKey, len(locked))
	for n, intent := range locked {
		keys[n] = keyOf(intent)
	}
	loaded, err := tx.loadTransactions(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	var changed []*transfer.Intent
	var attempts, again []Observation
	refused := &BatchError{}
	for n, intent := range locked {
		a := newAttempt(intent, loaded[keys[n]], hash)
		switch {
		case a.refusal != nil:
			refused.Refused = append(refused.Refused, RefusedItem{n, &StatusError{intent.Status, a.refusal}})
		case a.again: // it is looked up again from the start
			again = append(again, a.Observation)
		}
		reported = append(reported, Reported{intent, a.added})
		if a.unchanged {
			continue
		}
		if a.added { // it is stored as it is here: nothing is merged with it
			stored := a.Observation
			stored.SeenAt = now
			loaded[keys[n]] = append(loaded[keys[n]], stored)
		}
		changed, attempts = append(changed, intent), append(attempts, a.Observation)
	}
	if len(refused.Refused) > 0 {
		return nil, nil, refused
	}
	if err := tx.unconfirm(ctx, again); err != nil {
		return nil, nil, err
	}
	if err := tx.saveObservations(ctx, attempts, now); err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(reported, func(r Reported) bool { return !r.Added }) { // what is stored is merged with it
		events, err = tx.evaluate(ctx, changed, nil, now)
	} else {
		events, err = tx.evaluateLoaded(ctx, changed, loaded, nil, now)
	}
	return reported, events, err
}

// attempt is what a report makes of the transactions of an intent.
type attempt struct {
	Observation
	// refusal is why the intent cannot have it, nil if it can.
	refusal error
	// added is set if no transaction has the hash, unchanged if one is reported and looked up already, again if one has ended.
	added, unchanged, again bool
}

// newAttempt decides on the report of a hash for an intent with these transactions.
func newAttempt(intent *transfer.Intent, known []Observation, hash common.Hash) attempt {
	a := attempt{Observation: Observation{AccountID: intent.AccountID, TransferID: intent.ID, DueAt: dueFirst, Transaction: transfer.Transaction{
		Role: intent.AttemptRole(), Chain: intent.Source.Account.Chain, Hash: hash, State: transfer.Pending, Reported: true,
	}}}
	n := slices.IndexFunc(known, func(o Observation) bool { return o.Key() == a.Key() })
	switch {
	case intent.Simulated:
		a.refusal = transfer.ErrSimulated
	case intent.Executed() && intent.Hash != hash.Hex():
		a.refusal = ErrExecuted
	case n < 0 && len(known) >= maxAttempts:
		a.refusal = ErrTooManyAttempts
	case n < 0:
		a.added = true
	case known[n].State.Ended():
		a.again = true
	case known[n].Reported:
		a.unchanged = true
	default: // an event reported it before the client did
		a.Observation = known[n]
		a.Reported = true
	}
	return a
}

// SaveSender records the sender of a reported transaction, unless it is known.
func (s *Store) SaveSender(
	ctx context.Context, accountID, transferID uuid.UUID, chain caip.ChainID, hash common.Hash, sender common.Address, nonce uint64,
) error {
	_, err := s.db.NewRaw(`UPDATE transactions SET sender = ?, nonce = ? WHERE account_id = ? AND transfer_id = ? AND chain_id = ? AND hash = ? AND sender IS NULL`,
		sender.Bytes(), strconv.FormatUint(nonce, 10), accountID, transferID, chain.String(), hash.Bytes()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record the sender of a transaction of transfer %s: %w", transferID, err)
	}
	return nil
}
