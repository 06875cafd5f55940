// Package registry has the chains and tokens of the service: the rules for their definitions, the published lists that they are imported
// from, their rows, and the newest snapshot of them in memory.
//
// Chains are operator data: the environment, the deployments of settlers and the confirmations of a chain come from an imported file,
// never from code. A Snapshot is immutable, so any number of requests may read it without a lock; a change makes a new snapshot.
package registry

import (
	"cmp"
	"maps"
	"slices"

	"intents.internal/pkg/caip"
)

// Snapshot is the registry at one version. The zero value is empty.
type Snapshot struct {
	// Version increases with every change of a chain or a token.
	Version int64
	// Chains are ordered by chain number, Tokens by chain number, then symbol, then address.
	Chains []Chain
	Tokens []Token

	chains  map[caip.ChainID]Chain
	tokens  map[caip.AccountID]Token
	words   []tokenWords // of Tokens, in their order
	byChain map[caip.ChainID][]Token
	// contracts are the settlers and oracles of the chains.
	contracts map[caip.AccountID]bool
	watched   map[caip.ChainID]bool
	// requireWatched means that chains that are not watched take no new intents.
	requireWatched bool
}

// NewSnapshot sorts and indexes the registry. It takes ownership of both slices. retired are settlers and oracles of settlements that the chains had
// before; those that they have may be among them.
func NewSnapshot(version int64, chains []Chain, tokens []Token, retired ...caip.AccountID) *Snapshot {
	slices.SortFunc(chains, func(a, b Chain) int { return compareChains(a.ID, b.ID) })
	slices.SortFunc(tokens, func(a, b Token) int {
		return cmp.Or(
			compareChains(a.ID.Chain, b.ID.Chain),
			cmp.Compare(a.Symbol, b.Symbol),
			cmp.Compare(a.ID.Address, b.ID.Address),
		)
	})
	s := &Snapshot{
		Version: version, Chains: chains, Tokens: tokens,
		chains:  make(map[caip.ChainID]Chain, len(chains)),
		tokens:  make(map[caip.AccountID]Token, len(tokens)),
		byChain: make(map[caip.ChainID][]Token, len(chains)), contracts: make(map[caip.AccountID]bool, len(retired)),
	}
	for _, c := range chains {
		s.chains[c.ID] = c
		for _, settlement := range c.Settlements {
			for _, address := range []string{settlement.InputSettler, settlement.OutputSettler, settlement.Oracle} {
				s.contracts[caip.AccountID{Chain: c.ID, Address: address}] = true
			}
		}
	}
	for _, id := range retired {
		s.contracts[id] = true
	}
	s.words = make([]tokenWords, len(tokens))
	for i, t := range tokens {
		s.tokens[t.ID], s.words[i] = t, wordsOf(t)
		group := len(s.byChain[t.ID.Chain])
		s.byChain[t.ID.Chain] = tokens[i-group : i+1]
	}
	return s
}

func compareChains(a, b caip.ChainID) int {
	an, _ := a.Number()
	bn, _ := b.Number()
	return cmp.Compare(an, bn)
}

// Chain returns a chain by its id.
func (s *Snapshot) Chain(id caip.ChainID) (Chain, bool) {
	c, ok := s.chains[id]
	return c, ok
}

// Watched reports whether all these chains are currently watched for intents.
func (s *Snapshot) Watched(ids ...caip.ChainID) bool {
	for _, id := range ids {
		if !s.watched[id] {
			return false
		}
	}
	return true
}

// TakesIntents reports whether new intents may touch a chain.
func (s *Snapshot) TakesIntents(id caip.ChainID) bool { return !s.requireWatched || s.Watched(id) }

// WithWatched returns a snapshot in which exactly these chains are watched, and in which the others take no new intents if required is
// set, or s itself if that is already so. Version does not change.
func (s *Snapshot) WithWatched(ids []caip.ChainID, required bool) *Snapshot {
	watched := make(map[caip.ChainID]bool, len(ids))
	for _, id := range ids {
		watched[id] = true
	}
	if maps.Equal(watched, s.watched) && required == s.requireWatched {
		return s
	}
	changed := *s
	changed.watched, changed.requireWatched = watched, required
	return &changed
}

// Token returns a token by its id.
func (s *Snapshot) Token(id caip.AccountID) (Token, bool) {
	t, ok := s.tokens[id]
	return t, ok
}

// SettlementContract reports whether an account is a settler or the oracle of a settlement that its chain has or has had.
func (s *Snapshot) SettlementContract(id caip.AccountID) bool { return s.contracts[id] }

// TokensOn returns the tokens of one chain in the order of Tokens, none for an unknown chain.
func (s *Snapshot) TokensOn(id caip.ChainID) []Token { return s.byChain[id] }
