package watch

import (
	"context"
	"slices"
	"time"

	"intents.internal/core/rpc"
)

// What fewer than two hosts have shown is provisional. It may make work and submit an intent. It never outranks what is confirmed, never
// ends or blocks anything, and is removed once more hosts contradict it than show it. The only host of a chain is believed after the
// chain's depth. While all others of several hosts are silent, what one shows is believed after a minute, except where it ends an intent
// without success or stops the chain.

// singleProviderAfter is how long the watcher waits for a second provider before it relies on one.
const singleProviderAfter = time.Minute

// shown is what one provider shows of a fact.
type shown[F comparable] struct {
	fact F
	// known is false if the provider cannot tell: it lags, or cannot show it.
	known bool
}

// verdict is what the hosts of a chain show of a fact.
type verdict[F comparable] struct {
	// own is what the poll's provider shows, and facts what the hosts show that can tell.
	own   shown[F]
	facts []F
	// quorum is how many hosts make a fact certain: two, or one where the chain has one.
	quorum int
	// heard is how many hosts have answered, also those that cannot tell.
	heard int
	// alone is set where all other hosts have been silent for a minute.
	alone bool
}

func (v *verdict[F]) count(fact F) (hosts int) {
	for _, f := range v.facts {
		if f == fact {
			hosts++
		}
	}
	return hosts
}

// certain reports whether a fact is not provisional.
func (v *verdict[F]) certain(fact F) bool { return v.count(fact) >= v.quorum }

// believed reports whether a fact is certain or nobody has been there to contradict it for a minute.
func (v *verdict[F]) believed(fact F) bool {
	return v.certain(fact) || v.alone && v.count(fact) == 1 && len(v.facts) == 1
}

// falls reports whether more hosts contradict a fact than show it.
func (v *verdict[F]) falls(fact F) bool { return len(v.facts) > 2*v.count(fact) }

// decided returns the fact that is certain; ok is false while none is.
func (v *verdict[F]) decided() (fact F, ok bool) {
	n := slices.IndexFunc(v.facts, v.certain)
	if n < 0 {
		return fact, false
	}
	return v.facts[n], true
}

// hint returns the fact that is certain or, where all other hosts have answered that they cannot tell, what the one shows. It is where to
// look, and concludes nothing.
func (v *verdict[F]) hint() (fact F, ok bool) {
	if fact, ok = v.decided(); ok || len(v.facts) != 1 || v.heard < v.quorum {
		return fact, ok
	}
	return v.facts[0], true
}

// hosts are the hosts of a chain as one goroutine hears them.
type hosts struct {
	chain *rpc.Chain
	// othersDownSince is since when no second provider has responded, zero while one does.
	othersDownSince time.Time
}

// testify asks the hosts of the chain about items, the poll's provider first, until one fact of each is certain. The error is of the
// poll's provider; others that fail are silent.
func testify[T any, F comparable](
	ctx context.Context, l *hosts, first *rpc.Provider, items []T, ask func(context.Context, *rpc.Provider, []T) ([]shown[F], error),
) ([]verdict[F], error) {
	verdicts := make([]verdict[F], len(items))
	open := make([]int, len(items))
	for n := range items {
		open[n], verdicts[n].quorum = n, l.quorum(first)
	}
	heard := map[string]bool{}
	for n, provider := range slices.Concat([]*rpc.Provider{first}, l.chain.Other(first)) {
		if len(open) == 0 || heard[provider.Host()] {
			continue
		}
		asked := make([]T, len(open))
		for i, n := range open {
			asked[i] = items[n]
		}
		answers, err := ask(ctx, provider, asked)
		if err != nil && n == 0 {
			return nil, err
		}
		if err != nil {
			continue
		}
		heard[provider.Host()] = true
		for i, answer := range answers {
			of := &verdicts[open[i]]
			if of.heard++; n == 0 {
				of.own = answer
			}
			if answer.known {
				of.facts = append(of.facts, answer.fact)
			}
		}
		open = slices.DeleteFunc(open, func(n int) bool { _, ok := verdicts[n].decided(); return ok })
	}
	if len(heard) > 1 {
		l.othersDownSince = time.Time{}
	} else if len(open) > 0 && l.unanswered(first) == nil {
		for n := range verdicts {
			verdicts[n].alone = true
		}
	}
	return verdicts, nil
}

// quorum is how many hosts make a fact certain.
func (l *hosts) quorum(p *rpc.Provider) int {
	if l.chain.HasOther(p) {
		return 2
	}
	return 1
}

// unanswered is called when no provider but p has answered. It returns an error if the chain has others and less than a minute
// has passed since one of them answered.
func (l *hosts) unanswered(p *rpc.Provider) error {
	if !l.chain.HasOther(p) {
		return nil
	}
	if l.othersDownSince.IsZero() {
		l.othersDownSince = time.Now()
	}
	if time.Since(l.othersDownSince) < singleProviderAfter {
		return errUnanswered
	}
	return nil
}
