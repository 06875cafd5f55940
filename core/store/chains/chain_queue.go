package chains

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/pkg/caip"
)

// A queue is the condition of the transactions in it, which is that of its index by chain, account and time.
type queue string

const (
	// queued are the attempts that are looked up at some time: the condition of the indexes transactions_queue and transactions_unknown.
	queued queue = "state IN ('pending', 'dropped') AND due_at IS NOT NULL"
	// unfilled are the orders that are compared with their settlers at some time: the condition of transactions_unfilled.
	unfilled queue = "state = 'mined' AND due_at IS NOT NULL"
)

// DueAttempts reads attempts of a chain that are in no block yet and are due to be looked up, up to limit of them. Each account has
// the same share. Within an account the attempts that were never looked up come first, then those that are due longest.
//
// The accounts take turns, in the order of their ids, beginning after an account. next is the one after which the next page begins.
func (s *Store) DueAttempts(ctx context.Context, chain caip.ChainID, after uuid.UUID, limit int) (attempts []Followed, next uuid.UUID, err error) {
	return s.due(ctx, queued, chain, after, limit)
}

// DueOrders reads the unfilled orders of a chain that are due to be compared with the settlers, up to limit of them: the openings of open
// orders and the refunds of refunded ones. Accounts take turns as in DueAttempts.
func (s *Store) DueOrders(ctx context.Context, chain caip.ChainID, after uuid.UUID, limit int) (orders []Followed, next uuid.UUID, err error) {
	return s.due(ctx, unfilled, chain, after, limit)
}

// due reads a page of what is due in a queue of a chain; see DueAttempts.
func (s *Store) due(ctx context.Context, in queue, chain caip.ChainID, after uuid.UUID, limit int) (page []Followed, next uuid.UUID, err error) {
	accounts, err := s.dueAccounts(ctx, in, chain, after, limit)
	if err == nil && len(accounts) < limit && after != uuid.Nil {
		var first []uuid.UUID
		first, err = s.dueAccounts(ctx, in, chain, uuid.Nil, limit-len(accounts))
		accounts = append(accounts, slices.DeleteFunc(first, func(id uuid.UUID) bool { return slices.Contains(accounts, id) })...)
	}
	if err != nil || len(accounts) == 0 {
		return nil, after, err
	}
	next = accounts[0]
	if len(accounts) == limit {
		next = accounts[limit-1]
	}
	ids := make([]string, len(accounts))
	for n, id := range accounts {
		ids[n] = id.String()
	}
	share := (limit + len(accounts) - 1) / len(accounts)
	page, err = s.followed(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ModelTableExpr(`(SELECT due.place, attempt.* FROM unnest(?::uuid[]) WITH ORDINALITY AS due (account_id, place)
			CROSS JOIN LATERAL (SELECT *, row_number() OVER (ORDER BY due_at) AS turn FROM transactions
				WHERE chain_id = ? AND transactions.account_id = due.account_id AND due_at <= clock_timestamp() AND `+string(in)+`
				ORDER BY due_at LIMIT ?) AS attempt) AS transactions`, pgdialect.Array(ids), chain.String(), share).
			OrderExpr("turn, place").Limit(int64(limit))
	})
	return page, next, err
}

// dueAccounts reads the accounts after one that have something due in a queue of a chain, up to limit of them in the order of their ids.
// It reads one index entry for each account in the queue.
func (s *Store) dueAccounts(ctx context.Context, in queue, chain caip.ChainID, after uuid.UUID, limit int) (accounts []uuid.UUID, err error) {
	err = s.db.NewRaw(`WITH RECURSIVE accounts AS (
			(SELECT account_id, due_at FROM transactions WHERE chain_id = ?0 AND account_id > ?1 AND `+string(in)+` ORDER BY account_id, due_at LIMIT 1)
			UNION ALL
			SELECT following.account_id, following.due_at FROM accounts CROSS JOIN LATERAL (
				SELECT account_id, due_at FROM transactions WHERE chain_id = ?0 AND account_id > accounts.account_id AND `+string(in)+`
				ORDER BY account_id, due_at LIMIT 1) AS following
		) SELECT account_id FROM accounts WHERE due_at <= clock_timestamp() LIMIT ?2`, chain.String(), after, limit).Scan(ctx, &accounts)
	if err != nil {
		return nil, fmt.Errorf("read the accounts with due transactions on %s: %w", chain, err)
	}
	return accounts, nil
}

// AccountsOverUnknown returns which of the accounts have more than limit attempts on a chain that are looked up and that no provider has
// ever shown.
func (s *Store) AccountsOverUnknown(ctx context.Context, chain caip.ChainID, accounts []uuid.UUID, limit int) (map[uuid.UUID]bool, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	ids := make([]string, len(accounts))
	for n, id := range accounts {
		ids[n] = id.String()
	}
	var over []uuid.UUID
	err := s.db.NewRaw(`SELECT account_id FROM unnest(?::uuid[]) AS wanted (account_id) WHERE EXISTS (
			SELECT FROM transactions WHERE chain_id = ? AND transactions.account_id = wanted.account_id AND sender IS NULL AND `+string(queued)+` OFFSET ?)`,
		pgdialect.Array(ids), chain.String(), limit).Scan(ctx, &over)
	if err != nil {
		return nil, fmt.Errorf("read which accounts have many unknown attempts on %s: %w", chain, err)
	}
	result := make(map[uuid.UUID]bool, len(over))
	for _, id := range over {
		result[id] = true
	}
	return result, nil
}
