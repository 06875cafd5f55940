package intents

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
)

// ChainWrite is the result of one poll of a chain. It is written in one transaction with its consequences: the statuses of the
// intents, their events and the cursor. Writing it again changes nothing.
type ChainWrite struct {
	// Seen are transactions in their current state.
	Seen []Observation
	// Gone are transactions that are no longer in their block, and attempts that may be replaced no longer.
	Gone []Observation
	// Fork is the newest block that a reorganization left unchanged, nil for none. Anchors above it are removed.
	Fork *uint64
	// Progress is the new progress of the chain, nil to leave it unchanged.
	Progress *watched.Progress
	// Anchors are blocks to store.
	Anchors []transfer.Block
	// Effect is called with each intent of which Seen has an effect, once that is committed; nil for no call.
	Effect func(*transfer.Intent)
}

// WriteChain writes the result of a poll under the chain's lease. It returns the transitions that follow, or watched.ErrLeaseLost.
func (s *Store) WriteChain(ctx context.Context, lease watched.Lease, w ChainWrite) (events []transfer.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	var locked []*transfer.Intent
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		if err := watched.Within(tx.db).CheckEpoch(ctx, lease); err != nil {
			return err
		}
		if locked, err = tx.lockTransfers(ctx, keysOf(w.Seen, w.Gone)); err != nil {
			return err
		}
		w.Seen = withoutSimulated(w.Seen, locked)
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if err := tx.removeFromBlocks(ctx, w.Gone, now); err != nil {
			return err
		}
		if err := tx.freeEffects(ctx, w.Seen); err != nil {
			return err
		}
		if err := tx.saveObservations(ctx, w.Seen, now); err != nil {
			return err
		}
		if events, err = tx.evaluate(ctx, locked, claimed(w.Seen), now); err != nil {
			return err
		}
		if err := tx.saveAnswered(ctx, answeredBy(w.Seen, w.Gone), locked); err != nil || w.Progress == nil {
			return err
		}
		return watched.Within(tx.db).SaveProgress(ctx, lease.Chain, *w.Progress, w.Anchors, w.Fork)
	})
	if err != nil {
		return nil, err
	}
	s.CountTransitions(events)
	if w.Effect != nil {
		w.reportEffects(locked)
	}
	return events, nil
}

// reportEffects calls Effect with each intent of which Seen has a transaction with the effect of its role.
func (w *ChainWrite) reportEffects(locked []*transfer.Intent) {
	effects := map[TransferKey]bool{}
	for _, o := range w.Seen {
		if o.State == transfer.Mined {
			effects[o.transferKey()] = true
		}
	}
	for _, i := range locked {
		if effects[keyOf(i)] {
			w.Effect(i)
		}
	}
}

// withoutSimulated leaves out what was seen of intents that a client has simulated since they were read.
func withoutSimulated(seen []Observation, locked []*transfer.Intent) []Observation {
	simulated := map[TransferKey]bool{}
	for _, i := range locked {
		if i.Simulated {
			simulated[keyOf(i)] = true
		}
	}
	if len(simulated) == 0 {
		return seen
	}
	return slices.DeleteFunc(slices.Clone(seen), func(o Observation) bool { return simulated[o.transferKey()] })
}

func keysOf(lists ...[]Observation) []TransferKey {
	var keys []TransferKey
	for _, list := range lists {
		for _, o := range list {
			keys = append(keys, o.transferKey())
		}
	}
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

func compareKeys(a, b TransferKey) int {
	return cmp.Or(bytes.Compare(a.AccountID[:], b.AccountID[:]), bytes.Compare(a.ID[:], b.ID[:]))
}

// lockTransfers locks intents in the order of their keys, so that the watchers of two chains do not deadlock.
func (tx Tx) lockTransfers(ctx context.Context, keys []TransferKey) ([]*transfer.Intent, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var rows []TransferRow
	err := tx.db.NewSelect().With("wanted", tx.db.NewValues(&keys)).Model(&rows).
		Join("JOIN wanted ON wanted.account_id = transfers.account_id AND wanted.id = transfers.id").
		OrderExpr("transfers.account_id, transfers.id").For("UPDATE OF transfers").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock %d transfers: %w", len(keys), err)
	}
	intents := make([]*transfer.Intent, len(rows))
	for n, row := range rows {
		if intents[n], err = row.Intent(); err != nil {
			return nil, err
		}
	}
	return intents, nil
}

// removeFromBlocks makes attempts that clients reported pending again and deletes the other transactions.
func (tx Tx) removeFromBlocks(ctx context.Context, gone []Observation, now time.Time) error {
	var pending []Observation
	var found []transactionRow
	for _, o := range gone {
		if !o.Reported {
			found = append(found, newTransactionRow(o, now))
			continue
		}
		o.State, o.Block, o.LogIndex, o.Confirmed, o.DueAt, o.UnknownSince = transfer.Pending, nil, 0, false, dueFirst, time.Time{}
		pending = append(pending, o)
	}
	if err := tx.unconfirm(ctx, pending); err != nil {
		return err
	}
	if len(found) > 0 {
		if _, err := tx.db.NewDelete().Model(&found).WherePK().Exec(ctx); err != nil {
			return fmt.Errorf("remove %d transactions that are in no block any more: %w", len(found), err)
		}
	}
	return tx.saveObservations(ctx, pending, now)
}

// unconfirm has what is not confirmed change transactions: see saveObservations.
func (tx Tx) unconfirm(ctx context.Context, pending []Observation) error {
	if len(pending) == 0 {
		return nil
	}
	keys := make([]effectKey, len(pending))
	for n, o := range pending {
		keys[n] = effectKey{o.AccountID, o.TransferID, o.Chain.String(), o.Hash.Bytes(), o.Role, 0}
	}
	_, err := tx.db.NewUpdate().With("gone", tx.db.NewValues(&keys)).Model((*transactionRow)(nil)).TableExpr("gone").Set("confirmed_at = NULL").
		Where("transactions.account_id = gone.account_id AND transactions.transfer_id = gone.transfer_id AND transactions.chain_id = gone.chain_id").
		Where("transactions.hash = gone.hash AND transactions.role = gone.role").Exec(ctx)
	if err != nil {
		return fmt.Errorf("take %d transactions out of their blocks: %w", len(keys), err)
	}
	return nil
}

// effectKey names an effect and the intent that it confirms.
type effectKey struct {
	AccountID  uuid.UUID     `bun:"account_id,type:uuid"`
	TransferID uuid.UUID     `bun:"transfer_id,type:uuid"`
	ChainID    string        `bun:"chain_id,type:text"`
	Hash       []byte        `bun:"hash,type:bytea"`
	Role       transfer.Role `bun:"role,type:text"`
	LogIndex   int64         `bun:"log_index,type:bigint"`
}

// freeEffects takes effects from the intents that they confirmed before: a reorganization moves the logs of a transaction, so that
// one intent has the index that another one had. The other one is written in the same poll; until then its attempt is pending. What is
// confirmed stays.
func (tx Tx) freeEffects(ctx context.Context, seen []Observation) error {
	var effects []effectKey
	for _, o := range seen {
		if o.State == transfer.Mined {
			effects = append(effects, effectKey{o.AccountID, o.TransferID, o.Chain.String(), o.Hash.Bytes(), o.Role, o.LogIndex})
		}
	}
	if len(effects) == 0 {
		return nil
	}
	_, err := tx.db.NewUpdate().With("seen", tx.db.NewValues(&effects)).Model((*transactionRow)(nil)).TableExpr("seen").
		Set("state = CASE WHEN transactions.reported THEN 'pending' ELSE 'replaced' END").
		Set("block_number = NULL").Set("block_hash = NULL").Set("log_index = NULL").Set("confirmed_at = NULL").Set("found = NULL").
		Set("due_at = CASE WHEN transactions.reported THEN ?::timestamptz END", dueFirst).
		Where("transactions.account_id = seen.account_id AND transactions.chain_id = seen.chain_id AND transactions.hash = seen.hash").
		Where("transactions.role = seen.role AND transactions.log_index = seen.log_index AND transactions.transfer_id <> seen.transfer_id").
		Where("transactions.confirmed_at IS NULL").Exec(ctx)
	if err != nil {
		return fmt.Errorf("free %d effects that have moved: %w", len(effects), err)
	}
	return nil
}

// saveObservations inserts and updates transactions. It keeps a client's report and the time of the first observation. What is provisional
// changes nothing that is confirmed: see removeFromBlocks.
func (tx Tx) saveObservations(ctx context.Context, seen []Observation, now time.Time) error {
	if len(seen) == 0 {
		return nil
	}
	rows := make([]transactionRow, len(seen))
	for n, o := range seen {
		rows[n] = newTransactionRow(o, now)
	}
	_, err := tx.db.NewInsert().Model(&rows).
		On("CONFLICT (account_id, transfer_id, chain_id, hash, role) DO UPDATE").
		Set("state = excluded.state").Set("reported = transactions.reported OR excluded.reported").
		Set("block_number = excluded.block_number").Set("block_hash = excluded.block_hash").Set("log_index = excluded.log_index").
		Set("confirmed_at = CASE WHEN transactions.state = excluded.state AND transactions.block_hash IS NOT DISTINCT FROM excluded.block_hash THEN coalesce(transactions.confirmed_at, excluded.confirmed_at) ELSE excluded.confirmed_at END").
		Set("compare_at = CASE WHEN transactions.state = excluded.state AND transactions.block_hash = excluded.block_hash THEN transactions.compare_at END").
		Set("disputed_since = CASE WHEN transactions.state = excluded.state AND transactions.block_hash = excluded.block_hash THEN transactions.disputed_since END").
		Set("sender = coalesce(excluded.sender, transactions.sender)").Set("nonce = coalesce(excluded.nonce, transactions.nonce)").
		Set("due_at = excluded.due_at").Set("unknown_since = excluded.unknown_since").
		Set("found = excluded.found").
		Where("transactions.confirmed_at IS NULL OR excluded.confirmed_at IS NOT NULL OR transactions.state = excluded.state AND transactions.block_hash IS NOT DISTINCT FROM excluded.block_hash").
		Exec(ctx)
	if err != nil {
		return fmt.Errorf("write %d transactions: %w", len(rows), err)
	}
	return nil
}

// loadTransactions reads the transactions of intents.
func (tx Tx) loadTransactions(ctx context.Context, keys []TransferKey) (map[TransferKey][]Observation, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var rows []transactionRow
	err := tx.db.NewSelect().With("wanted", tx.db.NewValues(&keys)).Model(&rows).
		Join("JOIN wanted ON wanted.account_id = transactions.account_id AND wanted.id = transactions.transfer_id").
		OrderExpr("transactions.seen_at, transactions.chain_id, transactions.hash, transactions.role").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the transactions of %d transfers: %w", len(keys), err)
	}
	loaded := make(map[TransferKey][]Observation, len(keys))
	for _, row := range rows {
		o, err := row.observation()
		if err != nil {
			return nil, err
		}
		key := TransferKey{AccountID: row.AccountID, ID: row.TransferID}
		loaded[key] = append(loaded[key], o)
	}
	return loaded, nil
}

const (
	// repairEvery is the shortest time between two comparisons of an unfilled order with the settlers' own records of it.
	repairEvery = time.Hour
	// repairFor is how long after its expiry an unfilled order is compared. A refund is seen by its event later, too.
	repairFor = 30 * 24 * time.Hour
)

// NextRepair returns when an unfilled order is compared with its settlers next: in an hour, later in an eighth of the time since its last
// transaction, the opening or the refund, and never again a month after its expiry.
func NextRepair(intent *transfer.Intent, last transfer.Transaction, now time.Time) time.Time {
	if now.After(intent.Settlement.Expires.Add(repairFor)) {
		return time.Time{}
	}
	return now.Add(max(repairEvery, now.Sub(last.SeenAt)/8))
}

const (
	// rereadEvery is the shortest time between two readings of a failed attempt.
	rereadEvery = time.Hour
	// rereadFor is how long after it was first seen a failed attempt is read again.
	rereadFor = 7 * 24 * time.Hour
)

// NextReread returns when a failed attempt is read again next: in an hour, later in an eighth of its age, and never again after a week.
func NextReread(failed transfer.Transaction, now time.Time) time.Time {
	age := now.Sub(failed.SeenAt)
	if age > rereadFor {
		return time.Time{}
	}
	return now.Add(max(rereadEvery, age/8))
}

// claimed are the intents of the claims among transactions.
func claimed(seen []Observation) map[TransferKey]bool {
	keys := map[TransferKey]bool{}
	for _, o := range seen {
		if o.Role == transfer.RoleFinalise {
			keys[o.transferKey()] = true
		}
	}
	return keys
}

// answeredBy are the intents of settlers' transactions other than openings.
func answeredBy(lists ...[]Observation) []TransferKey {
	return keysOf(slices.DeleteFunc(slices.Concat(lists...), func(o Observation) bool { return o.Role == transfer.RoleSend || o.Role == transfer.RoleOpen }))
}

// answeredRow is whether an order is answered.
type answeredRow struct {
	AccountID uuid.UUID `bun:"account_id,type:uuid"`
	ID        uuid.UUID `bun:"id,type:uuid"`
	Answered  bool      `bun:"answered,type:boolean"`
}

// saveAnswered writes which of the locked intents' orders are answered, of those with these keys: an answered one is not looked at to know
// whether it can be refunded.
func (tx Tx) saveAnswered(ctx context.Context, keys []TransferKey, locked []*transfer.Intent) error {
	if len(keys) == 0 {
		return nil
	}
	loaded, err := tx.loadTransactions(ctx, keys)
	if err != nil {
		return err
	}
	var rows []answeredRow
	for _, intent := range locked {
		key := keyOf(intent)
		if _, found := slices.BinarySearchFunc(keys, key, compareKeys); found {
			rows = append(rows, answeredRow{key.AccountID, key.ID, intent.Answered(transactionsOf(loaded[key]))})
		}
	}
	return tx.writeAnswered(ctx, rows)
}

func (tx Tx) writeAnswered(ctx context.Context, rows []answeredRow) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.db.NewUpdate().With("changed", tx.db.NewValues(&rows)).Model((*TransferRow)(nil)).TableExpr("changed").
		Set("answered = changed.answered").
		Where("transfers.account_id = changed.account_id AND transfers.id = changed.id AND transfers.answered <> changed.answered").Exec(ctx)
	if err != nil {
		return fmt.Errorf("write whether %d orders are answered: %w", len(rows), err)
	}
	return nil
}

// evaluate updates the statuses of locked intents from their transactions. claimed are those whose claim is written now.
func (tx Tx) evaluate(ctx context.Context, locked []*transfer.Intent, claimed map[TransferKey]bool, now time.Time) (events []transfer.Event, err error) {
	keys := make([]TransferKey, len(locked))
	for n, intent := range locked {
		keys[n] = keyOf(intent)
	}
	loaded, err := tx.loadTransactions(ctx, keys)
	if err != nil {
		return nil, err
	}
	return tx.evaluateLoaded(ctx, locked, loaded, claimed, now)
}

// evaluateLoaded is evaluate with the transactions as they are stored.
func (tx Tx) evaluateLoaded(
	ctx context.Context, locked []*transfer.Intent, loaded map[TransferKey][]Observation, claimed map[TransferKey]bool, now time.Time,
) (events []transfer.Event, err error) {
	var rescheduled []Observation
	var moved []*transfer.Intent
	for _, intent := range locked {
		key := keyOf(intent)
		transactions := loaded[key]
		before := len(events)
		if events, err = apply(intent, transactions, events, now); err != nil {
			return nil, err
		}
		if len(events) > before {
			moved = append(moved, intent)
		}
		rescheduled = append(rescheduled, reschedule(intent, transactions, claimed[key], now)...)
	}
	if err := tx.saveObservations(ctx, rescheduled, now); err != nil {
		return nil, err
	}
	return events, tx.SaveTransitions(ctx, moved, events)
}

// apply applies the commands that follow from the transactions.
func apply(intent *transfer.Intent, observed []Observation, events []transfer.Event, now time.Time) ([]transfer.Event, error) {
	commands, err := intent.Evaluate(transactionsOf(observed), now)
	if err != nil {
		return nil, fmt.Errorf("evaluate transfer %s: %w", intent.ID, err)
	}
	for _, c := range commands {
		event, err := intent.Apply(c, now)
		if err != nil {
			return nil, fmt.Errorf("evaluate transfer %s: %w", intent.ID, err)
		}
		events = append(events, event)
	}
	return events, nil
}

func transactionsOf(observed []Observation) []transfer.Transaction {
	transactions := make([]transfer.Transaction, len(observed))
	for n, o := range observed {
		transactions[n] = o.Transaction
	}
	return transactions
}

// reschedule returns the transactions whose next look-up changes with the intent's status. An unfilled order whose claim is written now, as
// one that is seen or confirmed, while no fill is known is compared with its settlers at once, because a claim follows a fill.
func reschedule(intent *transfer.Intent, observed []Observation, claimed bool, now time.Time) (changed []Observation) {
	isFill := func(o Observation) bool { return o.Role == transfer.RoleFill }
	unexplained := claimed && !slices.ContainsFunc(observed, isFill)
	for _, o := range observed {
		due := o.DueAt
		switch {
		case !intent.Awaits(o.Transaction):
			due = time.Time{}
		case due.IsZero() && o.State == transfer.Pending, unexplained && o.State == transfer.Mined:
			due = dueFirst
		case due.IsZero() && o.State == transfer.Mined:
			due = NextRepair(intent, o.Transaction, now)
		case due.IsZero() && o.Failed():
			due = NextReread(o.Transaction, now)
		}
		if !due.Equal(o.DueAt) {
			o.DueAt = due
			changed = append(changed, o)
		}
	}
	return changed
}
