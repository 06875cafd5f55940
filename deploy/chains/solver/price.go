package solver

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// Price is what a token is worth. A token has the same price on all chains.
type Price struct {
	// Token is the zero address for the native token.
	Token common.Address
	// Decimals are 36 at most.
	Decimals uint8
	// Cents is the price of a whole token in hundredths of the unit of account, 1 at least.
	Cents int64
}

// feeBasisPoints is the solver's fee, in ten-thousandths of what it pays.
const feeBasisPoints, basisPoints = 30, 10_000

const mostDecimals = 36

// mostCents is the most that the solver pays for one order: a million whole units of account.
const mostCents = 1_000_000 * 100

// prices are those of a solver, by token.
type prices map[common.Address]Price

func newPrices(list []Price) prices {
	p := make(prices, len(list))
	for _, price := range list {
		p[price.Token] = price
	}
	return p
}

// powerOfTen returns 10^n.
func powerOfTen(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

// weight returns a token's price for its smallest unit, in cents/10^mostDecimals, so that it is a whole number.
func (p prices) weight(token common.Address) (weight *big.Int, known bool) {
	price, known := p[token]
	if !known {
		return nil, false
	}
	weight = powerOfTen(mostDecimals - int64(price.Decimals))
	return weight.Mul(weight, big.NewInt(price.Cents)), true
}

// output returns the most that the solver pays for an input; known is false for a token without a price.
func (p prices) output(from, to common.Address, amount *big.Int) (most *big.Int, known bool) {
	in, inKnown := p.weight(from)
	out, outKnown := p.weight(to)
	if !inKnown || !outKnown {
		return nil, false
	}
	most = new(big.Int).Mul(amount, in)
	most.Mul(most, big.NewInt(basisPoints-feeBasisPoints))
	return most.Quo(most, out.Mul(out, big.NewInt(basisPoints))), true
}

// input returns the least for which the solver pays an output; known is false for a token without a price.
func (p prices) input(from, to common.Address, amount *big.Int) (least *big.Int, known bool) {
	in, inKnown := p.weight(from)
	out, outKnown := p.weight(to)
	if !inKnown || !outKnown {
		return nil, false
	}
	least = new(big.Int).Mul(amount, out)
	least.Mul(least, big.NewInt(basisPoints))
	divisor := in.Mul(in, big.NewInt(basisPoints-feeBasisPoints))
	least.Add(least, divisor).Sub(least, big.NewInt(1)) // rounded up
	return least.Quo(least, divisor), true
}

// affords reports whether an output is no more than the solver pays for one order.
func (p prices) affords(token common.Address, amount *big.Int) bool {
	weight, known := p.weight(token)
	if !known {
		return false
	}
	limit := powerOfTen(mostDecimals)
	return weight.Mul(weight, amount).Cmp(limit.Mul(limit, big.NewInt(mostCents))) <= 0
}

// pays reports whether an order's input is worth its output to the solver, at a price that has moved by ten-thousandths, and whether it
// affords that.
func (p prices) pays(o *order, move int64) bool {
	token, amount := o.Inputs[0][0], o.Inputs[0][1]
	if token.BitLen() > 8*common.AddressLength {
		return false
	}
	most, known := p.output(common.BigToAddress(token), o.token(), amount)
	if !known {
		return false
	}
	most.Mul(most, big.NewInt(basisPoints-move)).Quo(most, big.NewInt(basisPoints))
	return o.output().Amount.Cmp(most) <= 0 && p.affords(o.token(), o.output().Amount)
}
