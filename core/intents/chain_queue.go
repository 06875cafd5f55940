package intents

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// A queue is the transactions of a chain that become due. Its index is by chain, key and account, with where as its condition: what is
// not due is not read, and what can never be due again is not in it.
type queue struct {
	// key is the column that orders the queue, of this type, and first is less than all keys.
	key, keyType, first string
	where               string
}

// unconfirmed are the transactions in blocks that other providers have not shown yet.
const unconfirmed = "block_number IS NOT NULL AND confirmed_at IS NULL AND state <> 'unsupported'"

var (
	// attempts are looked up at some time.
	attempts = queue{"due_at", "timestamptz", "-infinity", "state IN ('pending', 'dropped') AND due_at IS NOT NULL"}
	// failed are the attempts that are read again at some time, since what failed them may have been wrong.
	failed = queue{"due_at", "timestamptz", "-infinity", "state IN ('reverted', 'replaced', 'mismatch', 'order_mismatch') AND due_at IS NOT NULL"}
	// unfilled are the orders that are compared with their settlers at some time.
	unfilled = queue{"due_at", "timestamptz", "-infinity", "state = 'mined' AND due_at IS NOT NULL"}
	// sent and settled are the attempts and the settlers' transactions that were never compared with other providers.
	sent    = queue{"block_number", "bigint", "-1", unconfirmed + " AND compare_at IS NULL AND role IN ('send', 'open')"}
	settled = queue{"block_number", "bigint", "-1", unconfirmed + " AND compare_at IS NULL AND role NOT IN ('send', 'open')"}
	// disputed are the transactions that other providers contradict.
	disputed = queue{"compare_at", "timestamptz", "-infinity", unconfirmed + " AND compare_at IS NOT NULL"}
)

// Turn is a place in a queue: the transactions of an account with one key. The zero value is before all.
type Turn struct {
	Key       string    `bun:"key"`
	AccountID uuid.UUID `bun:"account_id"`
}

// DueAttempts reads attempts of a chain that are in no block yet and are due to be looked up, up to limit of them. Each account has
// the same share. Within an account the attempts that were never looked up come first, then those that are due longest.
//
// The accounts take turns, beginning after a turn. next is the one after which the next page begins.
func (s *Store) DueAttempts(ctx context.Context, chain caip.ChainID, after Turn, limit int) (page []Followed, next Turn, err error) {
	return s.due(ctx, attempts, chain, "statement_timestamp()", after, limit)
}

// DueFailed reads the failed attempts of a chain that are due to be read again, up to limit of them. Accounts take turns as in DueAttempts.
func (s *Store) DueFailed(ctx context.Context, chain caip.ChainID, after Turn, limit int) (page []Followed, next Turn, err error) {
	return s.due(ctx, failed, chain, "statement_timestamp()", after, limit)
}

// ReplacedSince reads the attempts of a chain that count as replaced since a time and are still read again: a reorganization may have taken
// away what has replaced them.
func (s *Store) ReplacedSince(ctx context.Context, chain caip.ChainID, since time.Time) ([]Observation, error) {
	var rows []transactionRow
	err := s.db.NewSelect().Model(&rows).Where("chain_id = ? AND "+failed.where+" AND state = ? AND confirmed_at >= ?",
		chain.String(), transfer.Replaced, since).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the replaced attempts of %s: %w", chain, err)
	}
	return readEach(s, rows, transactionRow.observation), nil
}

// DueOrders reads the unfilled orders of a chain that are due to be compared with the settlers, up to limit of them: the openings of open
// orders and the refunds of refunded ones. Accounts take turns as in DueAttempts.
func (s *Store) DueOrders(ctx context.Context, chain caip.ChainID, after Turn, limit int) (page []Followed, next Turn, err error) {
	return s.due(ctx, unfilled, chain, "statement_timestamp()", after, limit)
}

// turnsPerPlace is how many turns are read for each place of a page: an account with many of them takes no others' places.
const turnsPerPlace = 4

// due reads a page of what is due in a queue of a chain, up to a key in SQL; see DueAttempts. An account has its share of the page, and
// what the others leave.
func (s *Store) due(ctx context.Context, in queue, chain caip.ChainID, until string, after Turn, limit int) (page []Followed, next Turn, err error) {
	if limit <= 0 {
		return nil, after, nil
	}
	turns, err := s.turns(ctx, in, chain, until, after, turnsPerPlace*limit)
	if err == nil && len(turns) < limit && after != (Turn{}) {
		var first []Turn
		first, err = s.turns(ctx, in, chain, until, Turn{}, turnsPerPlace*limit-len(turns))
		turns = append(turns, slices.DeleteFunc(first, func(t Turn) bool { return slices.Contains(turns, t) })...)
	}
	if err != nil || len(turns) == 0 {
		return nil, after, err
	}
	next, places, accounts := arrange(turns, limit)
	share := limit / accounts
	page, err = s.placed(ctx, in, chain, places, share, limit)
	if err != nil || len(page) == limit || !anyHas(page, share) {
		return page, next, err
	}
	more, err := s.placed(ctx, in, chain, places, limit, limit)
	return fill(page, more, limit), next, err
}

// anyHas reports whether an account has a whole share of a page, and may have more.
func anyHas(page []Followed, share int) bool {
	has := map[uuid.UUID]int{}
	for _, f := range page {
		if has[f.AccountID]++; has[f.AccountID] == share {
			return true
		}
	}
	return false
}

// fill adds to a page what it does not have, up to limit.
func fill(page, more []Followed, limit int) []Followed {
	known := make(map[TransactionKey]bool, len(page))
	for _, f := range page {
		known[f.Key()] = true
	}
	for _, f := range more {
		if len(page) < limit && !known[f.Key()] {
			page = append(page, f)
		}
	}
	return page
}

// arrange puts the first turn of each account before the second one of any, and so on, for at most limit accounts. next is the last turn
// that has a place for certain.
func arrange(turns []Turn, limit int) (next Turn, places []Turn, accounts int) {
	rounds := map[uuid.UUID]int{}
	var byRound [][]Turn
	for _, t := range turns {
		round, known := rounds[t.AccountID]
		if !known && len(rounds) == limit {
			break
		}
		rounds[t.AccountID]++
		if round == len(byRound) {
			byRound = append(byRound, nil)
		}
		byRound[round] = append(byRound[round], t)
	}
	first := byRound[0]
	return first[len(first)-1], slices.Concat(byRound...), len(rounds)
}

// placed reads the transactions of turns in their order, up to share of each and up to limit of all.
func (s *Store) placed(ctx context.Context, in queue, chain caip.ChainID, turns []Turn, share, limit int) ([]Followed, error) {
	keys, accounts := make([]string, len(turns)), make([]string, len(turns))
	for n, t := range turns {
		keys[n], accounts[n] = t.Key, t.AccountID.String()
	}
	return s.followed(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ModelTableExpr(`(SELECT due.* FROM unnest(?::`+in.keyType+`[], ?::uuid[]) WITH ORDINALITY AS turn (key, account_id, place)
			CROSS JOIN LATERAL (SELECT * FROM transactions WHERE chain_id = ? AND `+in.key+` = turn.key AND transactions.account_id = turn.account_id
				AND `+in.where+` LIMIT ?) AS due LIMIT ?) AS transactions`,
			pgdialect.Array(keys), pgdialect.Array(accounts), chain.String(), share, limit)
	})
}

// turns reads the turns after one that are due by a key in SQL, up to limit of them. It reads one index entry for each.
func (s *Store) turns(ctx context.Context, in queue, chain caip.ChainID, until string, after Turn, limit int) (turns []Turn, err error) {
	if after == (Turn{}) {
		after.Key = in.first
	}
	following := `SELECT ` + in.key + ` AS key, account_id FROM transactions WHERE chain_id = ?0 AND ` + in.key + ` <= ` + until + ` AND ` + in.where
	err = s.db.NewRaw(`WITH RECURSIVE turns AS (
			(`+following+` AND (`+in.key+`, account_id) > (?1::`+in.keyType+`, ?2::uuid) ORDER BY `+in.key+`, account_id LIMIT 1)
			UNION ALL
			SELECT following.* FROM turns CROSS JOIN LATERAL (
				`+following+` AND (`+in.key+`, account_id) > (turns.key, turns.account_id) ORDER BY `+in.key+`, account_id LIMIT 1) AS following
		) SELECT key::text, account_id FROM turns LIMIT ?3`, chain.String(), after.Key, after.AccountID, limit).Scan(ctx, &turns)
	if err != nil {
		return nil, fmt.Errorf("read the turns of accounts with due transactions on %s: %w", chain, err)
	}
	return turns, nil
}

// inSteps rounds a time up to a step of up to an eighth of the delay, so that many transactions of an account are few turns.
func inSteps(at, now time.Time) time.Time {
	const shortest = 8 * time.Second
	delay := at.Sub(now)
	if delay < shortest {
		return at
	}
	step := time.Second
	for 2*step <= delay/8 {
		step *= 2
	}
	return at.Truncate(step).Add(step)
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
			SELECT FROM transactions WHERE chain_id = ? AND transactions.account_id = wanted.account_id AND sender IS NULL AND `+attempts.where+` OFFSET ?)`,
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
