package watch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
	"intents.internal/core/rpc"
)

const (
	// pollBytes and accountBytes are the Watcher's.
	pollBytes, accountBytes = 128 << 20, 32 << 20
	// callsAtOnce is how many calls are sent before the bytes of the poll are counted again: as many as a request has.
	callsAtOnce = 100
	// firstShare is how many transactions of each account the first request of a poll has. Each further one has twice as many, so that
	// large ones are known before many are asked for.
	firstShare = 4
	// slowFor is how long the transactions of an account that has named one which takes too long are read after those of others.
	slowFor = time.Hour
	// minSlowTime and maxSlowTime bound the time that one poll has for such transactions; between them it is the chain's period.
	minSlowTime, maxSlowTime = 4 * time.Second, 12 * time.Second
	// maxSlowAccounts bounds the accounts that are remembered.
	maxSlowAccounts = 10_000
)

var (
	// errOverBytes is the error of a transaction for which its account, or all of them, have read too much in this poll.
	errOverBytes = errors.New("the transactions that clients have named are larger than one poll reads")
	// errNoTime is the error of a transaction for which the poll has no time left.
	errNoTime = errors.New("transactions of the account take too long")
)

// chosen is a transaction that clients have named, with the intents that wait for it.
type chosen struct {
	hash  common.Hash
	items []int
	of    []intents.Followed
}

// concerns reports whether a log concerns one of the intents.
func (c *chosen) concerns(l evm.Log) bool {
	return slices.ContainsFunc(c.of, func(f intents.Followed) bool { return f.Intent.Concerns(l) })
}

// receipts reads the receipts of transactions with the logs that concern their intents; see fetchChosen.
func (l *loop) receipts(ctx context.Context, v *view, provider *rpc.Provider, transactions []intents.Followed) ([]rpc.Result[*evm.Receipt], error) {
	return fetchChosen(ctx, l, v, provider, transactions, func(c *chosen) *rpc.Call[*evm.Receipt] { return rpc.Receipt(c.hash, c.concerns) })
}

// fetchChosen sends a call for each distinct hash of transactions that clients have named, and returns the answers in the order of the
// transactions. Time and bytes belong to the transactions: what takes too long, or is over its account's part, is the error of the
// transaction. The returned error is of the provider.
func fetchChosen[T any](
	ctx context.Context, l *loop, v *view, provider *rpc.Provider, transactions []intents.Followed, call func(*chosen) *rpc.Call[T],
) ([]rpc.Result[T], error) {
	results := make([]rpc.Result[T], len(transactions))
	var prompt, slow []*chosen
	for _, c := range distinct(transactions) {
		if slices.ContainsFunc(c.of, func(f intents.Followed) bool { return !l.isSlow(f.AccountID) }) {
			prompt = append(prompt, c)
		} else {
			slow = append(slow, c)
		}
	}
	give := func(c *chosen, r rpc.Result[T]) {
		for _, n := range c.items {
			results[n] = r
		}
	}
	if err := fetchRounds(ctx, l, v, provider, prompt, call, give); err != nil || len(slow) == 0 {
		return results, err
	}
	timed, cancel := context.WithTimeout(ctx, min(max(l.period(), minSlowTime), maxSlowTime))
	defer cancel()
	for _, c := range slow {
		give(c, rpc.Result[T]{Err: errNoTime})
	}
	err := fetchRounds(timed, l, v, provider, slow, call, give)
	if timed.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	return results, err
}

// distinct groups transactions by their hashes, in their order.
func distinct(transactions []intents.Followed) (all []*chosen) {
	byHash := make(map[common.Hash]*chosen, len(transactions))
	for n, f := range transactions {
		c := byHash[f.Hash]
		if c == nil {
			c = &chosen{hash: f.Hash}
			byHash[f.Hash] = c
			all = append(all, c)
		}
		c.items, c.of = append(c.items, n), append(c.of, f)
	}
	return all
}

// fetchRounds sends the calls in rounds of more and more of each account. give takes each answer.
func fetchRounds[T any](
	ctx context.Context, l *loop, v *view, provider *rpc.Provider, left []*chosen, call func(*chosen) *rpc.Call[T], give func(*chosen, rpc.Result[T]),
) error {
	for share := firstShare; len(left) > 0; share *= 2 {
		var round, later []*chosen
		places := map[uuid.UUID]int{}
		for _, c := range left {
			account := c.of[0].AccountID
			switch most := v.read.places(account, share); {
			case most == 0:
				give(c, rpc.Result[T]{Err: errOverBytes})
			case places[account] == most:
				later = append(later, c)
			default:
				places[account]++
				round = append(round, c)
			}
		}
		for some := range slices.Chunk(round, callsAtOnce) {
			if err := fetchSome(ctx, l, v, provider, some, call, give); err != nil {
				return err
			}
		}
		left = later
	}
	return nil
}

// fetchSome sends some calls of a round, or none once the poll has read its bytes.
func fetchSome[T any](
	ctx context.Context, l *loop, v *view, provider *rpc.Provider, some []*chosen, call func(*chosen) *rpc.Call[T], give func(*chosen, rpc.Result[T]),
) error {
	if v.read.total >= v.read.most {
		for _, c := range some {
			give(c, rpc.Result[T]{Err: errOverBytes})
		}
		return nil
	}
	answers, err := rpc.FetchEach(ctx, provider, some, call)
	if err != nil {
		return err
	}
	for n, answer := range answers {
		account := some[n].of[0].AccountID
		v.read.add(account, answer.Bytes)
		if errors.Is(answer.Err, context.DeadlineExceeded) {
			l.setSlow(account)
		}
		give(some[n], answer)
	}
	return nil
}

// bytesRead is what one poll has read of transactions that clients have named.
type bytesRead struct {
	// most bounds the poll, and perAccount the part of one account.
	most, perAccount, total int
	accounts                map[uuid.UUID]struct{ bytes, transactions int }
}

// places is how many more transactions of an account can be read at once, at most share: at the average size of those that were read.
func (b *bytesRead) places(account uuid.UUID, share int) int {
	read := b.accounts[account]
	left := min(b.perAccount-read.bytes, b.most-b.total)
	switch {
	case left <= 0:
		return 0
	case read.bytes == 0:
		return share
	default:
		return max(1, min(share, left*read.transactions/read.bytes))
	}
}

func (b *bytesRead) add(account uuid.UUID, bytes int) {
	if b.accounts == nil {
		b.accounts = map[uuid.UUID]struct{ bytes, transactions int }{}
	}
	read := b.accounts[account]
	read.bytes, read.transactions = read.bytes+bytes, read.transactions+1
	b.accounts[account] = read
	b.total += bytes
}

// isSlow reports whether an account has named a transaction that took too long.
func (l *loop) isSlow(account uuid.UUID) bool {
	until, known := l.slowUntil[account]
	if known && time.Now().After(until) {
		delete(l.slowUntil, account)
		return false
	}
	return known
}

func (l *loop) setSlow(account uuid.UUID) {
	if len(l.slowUntil) >= maxSlowAccounts {
		clear(l.slowUntil)
	}
	l.slowUntil[account] = time.Now().Add(slowFor)
}
