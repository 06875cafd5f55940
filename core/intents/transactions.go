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

	"intents.internal/core/identity/identities"
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
	if intent.Status == transfer.Created {
		return transfer.History{}, nil
	}
	var rows []struct {
		transactionRow `bun:",extend"`

		Head   uint64    `bun:"head_number,nullzero"`
		Final  uint64    `bun:"final_block,nullzero"`
		ReadAt time.Time `bun:"read_at,nullzero"`

		SourceReadUntil time.Time `bun:"source_read_until,nullzero"`
	}
	err := s.db.NewSelect().Model(&rows).ColumnExpr(transactionColumns+", head_number, final_block, read_at").
		ColumnExpr("(SELECT complete_until FROM watched_chains WHERE chain_id = ?) AS source_read_until", intent.Source.Account.Chain.String()).
		Join("LEFT JOIN watched_chains ON watched_chains.chain_id = transactions.chain_id").
		Where("account_id = ? AND transfer_id = ?", intent.AccountID, intent.ID).
		OrderExpr("seen_at, transactions.chain_id, hash, role").Scan(ctx)
	if err != nil {
		return transfer.History{}, fmt.Errorf("read the history of transfer %s: %w", intent.ID, err)
	}
	history := transfer.History{Heights: map[caip.ChainID]transfer.Heights{}}
	for _, row := range rows {
		o, err := row.observation()
		if err != nil {
			return transfer.History{}, err
		}
		history.Transactions = append(history.Transactions, o.Transaction)
		history.SourceReadUntil = row.SourceReadUntil
		if !row.ReadAt.IsZero() {
			history.Heights[o.Chain] = transfer.Heights{Head: row.Head, Final: row.Final}
		}
	}
	return history, nil
}

// maxAttempts bounds how many transactions a client may report for one intent.
const maxAttempts = 50

// ReportTransaction records an attempt that a client reports for one of its intents, and returns the updated intent and whether
// the attempt is new. The same hash again changes nothing, unless the attempt has failed or was dropped: then it is looked up again. It returns
// ErrTransferNotFound, or, if another transaction has already carried out the intent, an error that wraps transfer.ErrTransition
// with the unchanged intent.
func (s *Store) ReportTransaction(
	ctx context.Context, grant identities.Grant, accountID, id uuid.UUID, hash common.Hash,
) (intent *transfer.Intent, added bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	var events []transfer.Event
	err = s.InTx(ctx, grant.Turn(id), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, identities.Within(tx.db), accountID); err != nil {
			return err
		}
		if intent, err = tx.LockTransfer(ctx, accountID, id); err != nil {
			return err
		}
		events, added, err = tx.report(ctx, intent, hash)
		return err
	})
	if err != nil {
		return intent, false, err
	}
	s.CountTransitions(events)
	return intent, added, nil
}

func (tx Tx) report(ctx context.Context, intent *transfer.Intent, hash common.Hash) (events []transfer.Event, added bool, err error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, false, err
	}
	key := keyOf(intent)
	loaded, err := tx.loadTransactions(ctx, []TransferKey{key})
	if err != nil {
		return nil, false, err
	}
	known := loaded[key]
	attempt := Observation{AccountID: intent.AccountID, TransferID: intent.ID, DueAt: dueFirst, Transaction: transfer.Transaction{
		Role: intent.AttemptRole(), Chain: intent.Source.Account.Chain, Hash: hash, State: transfer.Pending, Reported: true,
	}}
	n := slices.IndexFunc(known, func(o Observation) bool { return o.Key() == attempt.Key() })
	switch {
	case intent.Executed() && intent.Hash != hash.Hex(), n < 0 && len(known) >= maxAttempts:
		return nil, false, fmt.Errorf("report a transaction of a %s that is %s: %w", intent.Type, intent.Status, transfer.ErrTransition)
	case n >= 0 && known[n].Reported && !known[n].State.Ended():
		return nil, false, nil
	case n >= 0 && !known[n].State.Ended(): // an event reported it before the client did
		attempt = known[n]
		attempt.Reported = true
	}
	if n >= 0 && known[n].State.Ended() { // it is looked up again from the start
		if err := tx.unconfirm(ctx, []Observation{attempt}); err != nil {
			return nil, false, err
		}
	}
	if err := tx.saveObservations(ctx, []Observation{attempt}, now); err != nil {
		return nil, false, err
	}
	if n < 0 { // it is stored as it is here: nothing is merged with it
		attempt.SeenAt = now
		loaded[key] = append(known, attempt)
		events, err = tx.evaluateLoaded(ctx, []*transfer.Intent{intent}, loaded, nil, now)
		return events, true, err
	}
	events, err = tx.evaluate(ctx, []*transfer.Intent{intent}, nil, now)
	return events, true, err
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
