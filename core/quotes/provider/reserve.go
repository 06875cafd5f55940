package provider

import (
	"math/big"

	"intents.internal/core/quotes/quote"
)

// maxReserveBps is the largest reserve, five percent, in basis points, of which all has 10,000.
const maxReserveBps, allBps = 500, 10_000

// reserve makes offers worse for the user by so many basis points: less output, rounded down, or more input, rounded up. A quote does not bind a
// solver to an order that is opened on chain, which it prices anew: where gas has risen meanwhile, an order without a reserve is left alone. Those of
// which nothing is left are dropped. The order of offers stays.
func (r Request) reserve(offers []Offer, bps int64) (reserved []Offer) {
	if bps == 0 {
		return offers
	}
	for _, offer := range offers {
		amount := new(big.Int)
		if r.Kind == quote.ExactOutput {
			amount.Mul(offer.Amount, big.NewInt(allBps+bps))
			amount.Add(amount, big.NewInt(allBps-1)) // rounds up
		} else {
			amount.Mul(offer.Amount, big.NewInt(allBps-bps))
		}
		offer.Amount = amount.Quo(amount, big.NewInt(allBps))
		if amount.Sign() > 0 && amount.BitLen() <= 256 {
			reserved = append(reserved, offer)
		}
	}
	return reserved
}
