package client

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Amount is a whole number of a token's base units, in decimal: "1500000" are 1.5 of a token with 6 decimals.
type Amount string

// errAmount is what ParseAmount and Int say of a text that is no amount.
var errAmount = errors.New("an amount is digits, with a dot and decimal places where a token has them")

// ParseAmount returns the base units of a decimal number such as "1.5". It is an error if the number has more decimal places than the token
// has decimals.
func ParseAmount(decimal string, decimals int) (Amount, error) {
	whole, fraction, dotted := strings.Cut(decimal, ".")
	if whole == "" || dotted && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return "", fmt.Errorf("%q: %w", decimal, errAmount)
	}
	if len(fraction) > decimals {
		return "", fmt.Errorf("%q has %d decimal places, and the token has %d", decimal, len(fraction), decimals)
	}
	digits := strings.TrimLeft(whole+fraction+strings.Repeat("0", decimals-len(fraction)), "0")
	return Amount(max(digits, "0")), nil
}

// Int returns the amount as a number.
func (a Amount) Int() (*big.Int, error) {
	if a == "" || strings.Trim(string(a), "0123456789") != "" {
		return nil, fmt.Errorf("%q: %w", string(a), errAmount)
	}
	number, _ := new(big.Int).SetString(string(a), 10)
	return number, nil
}

// Decimal returns the amount in the unit that people use, such as "1.5", for a token with so many decimals.
func (a Amount) Decimal(decimals int) string {
	digits := string(a)
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - decimals
	fraction := strings.TrimRight(digits[point:], "0")
	if fraction == "" {
		return digits[:point]
	}
	return digits[:point] + "." + fraction
}
