package quotes

import (
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

const (
	// farFactor is how many times another price an offer's must be to be no offer that is meant: an absurd one would come first, and an order of it
	// is filled by nobody. No price moves so far in recentFor.
	farFactor = 10
	// recentFor is how long a price is compared with.
	recentFor = 10 * time.Minute
	// maxPrices bounds the prices that are remembered.
	maxPrices = 1 << 12
)

// priceKey is what prices are comparable of: the amount matters too, because of the fees that do not depend on it.
type priceKey struct {
	source, destination caip.AccountID
	kind                quote.Kind
	// digits is the number of digits of the amount that is fixed.
	digits int
}

// prices are those that providers have agreed upon lately, or that the only one has offered.
type prices struct {
	mu   sync.Mutex
	seen map[priceKey]price
}

type price struct {
	perInput *big.Rat
	at       time.Time
}

// outliers returns which offers of each provider are too far from a recent price or, where there is none, too much better than those of the
// others: with two providers nobody can tell which of them errs, and the worse one locks no money. Tokens of one asset have a price of about 1.
// Offers are the best first.
func (p *prices) outliers(key priceKey, source, destination registry.Token, offered [][]*big.Rat, now time.Time) [][]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	recent := p.seen[key]
	known := recent.perInput != nil && now.Sub(recent.at) < recentFor
	oneAsset := source.Symbol == destination.Symbol && source.Decimals == destination.Decimals
	out, best := make([][]bool, len(offered)), []*big.Rat{}
	for n, offers := range offered {
		others := othersBest(offered, n)
		taken := false
		for _, offer := range offers {
			far := oneAsset && isFar(offer, big.NewRat(1, 1))
			switch {
			case known:
				far = far || isFar(offer, recent.perInput) || isFar(recent.perInput, offer)
			case others != nil:
				far = far || isFar(offer, others)
			}
			if out[n] = append(out[n], far); !far && !taken {
				best, taken = append(best, offer), true
			}
		}
	}
	if len(best) > 1 || len(best) == 1 && len(offered) == 1 {
		p.remember(key, price{median(best), now})
	}
	return out
}

// remember stores a price, in place of old ones or, where there are none, of all.
func (p *prices) remember(key priceKey, agreed price) {
	if len(p.seen) >= maxPrices {
		maps.DeleteFunc(p.seen, func(_ priceKey, old price) bool { return agreed.at.Sub(old.at) >= recentFor })
	}
	if len(p.seen) >= maxPrices || p.seen == nil {
		p.seen = map[priceKey]price{}
	}
	p.seen[key] = agreed
}

// othersBest is the median of the best offers of all providers but one, nil without any.
func othersBest(offered [][]*big.Rat, n int) *big.Rat {
	var best []*big.Rat
	for m, offers := range offered {
		if m != n && len(offers) > 0 {
			best = append(best, offers[0])
		}
	}
	if len(best) == 0 {
		return nil
	}
	return median(best)
}

func median(prices []*big.Rat) *big.Rat {
	prices = slices.SortedFunc(slices.Values(prices), (*big.Rat).Cmp)
	return prices[len(prices)/2]
}

// isFar reports whether a price is more than farFactor times another.
func isFar(price, than *big.Rat) bool {
	return price.Cmp(new(big.Rat).Mul(than, big.NewRat(farFactor, 1))) > 0
}

// perInput is the output of an offer for one unit of its input.
func perInput(r provider.Request, offer provider.Offer) *big.Rat {
	if r.Kind == quote.ExactOutput {
		return new(big.Rat).SetFrac(r.Destination.Amount, offer.Amount)
	}
	return new(big.Rat).SetFrac(offer.Amount, r.Source.Amount)
}
