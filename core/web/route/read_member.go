package route

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// valueError is why a value cannot be what its schema says; Error is the text for the client.
type valueError string

func (e valueError) Error() string { return string(e) }

const (
	errNull     valueError = "must not be null"
	errNotWhole valueError = "must be a whole number"
)

// readMember holds every value of a request to what JSON Schema says and Go's decoder does not: null is a value of its own, which only a
// nullable takes, and a number is an integer if its value is whole, however it is written (JSON Schema Core 2020-12 section 4.2.3). A whole
// number that its type cannot hold becomes the nearest one, so that the bounds of the field refuse it.
func readMember(from *jsontext.Decoder, into any) error {
	switch kind := from.PeekKind(); kind { //nolint:exhaustive // every other kind is the decoder's
	case 'n':
		if _, ok := into.(interface{ takesNull() }); ok {
			return errors.ErrUnsupported
		}
		if err := from.SkipValue(); err != nil {
			return err
		}
		return errNull
	case '0':
		switch target := reflect.ValueOf(into).Elem(); {
		case target.CanInt():
			text, err := from.ReadValue()
			if err != nil {
				return err
			}
			n, whole := wholeValue(string(text), math.MinInt64, math.MaxInt64, strconv.ParseInt)
			if !whole {
				return errNotWhole
			}
			target.SetInt(n)
			return nil
		case target.CanUint():
			text, err := from.ReadValue()
			if err != nil {
				return err
			}
			n, whole := wholeValue(string(text), 0, math.MaxUint64, strconv.ParseUint)
			if !whole {
				return errNotWhole
			}
			target.SetUint(n)
			return nil
		}
	}
	return errors.ErrUnsupported
}

var memberReader = json.WithUnmarshalers(json.UnmarshalFromFunc(readMember))

// wholeValue returns the value of a JSON number, least or most if it is beyond them. whole is false for a number with a fraction. Numbers
// are moved by their exponent as text, since an exponent may be longer than any memory.
func wholeValue[T int64 | uint64](text string, least, most T, parse func(string, int, int) (T, error)) (n T, whole bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	sign, digits := "", mantissa
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, digits = "-", rest
	}
	units, fraction, _ := strings.Cut(digits, ".")
	significant := strings.TrimRight(units+fraction, "0")
	zeros := len(units) - len(significant)
	significant = strings.TrimLeft(significant, "0")
	if significant == "" {
		return 0, true
	}
	const longest = 20 // digits of the largest uint64
	power := 0
	if exponent != "" {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil { // beyond the range of int
			power = math.MaxInt32
			if exponent[0] == '-' {
				power = math.MinInt32
			}
		}
	}
	power = min(max(power, math.MinInt32), math.MaxInt32)
	if zeros += power; zeros < 0 {
		return 0, false
	}
	beyond := most
	if sign != "" {
		beyond = least
	}
	if len(significant)+zeros > longest {
		return beyond, true
	}
	if sign != "" && least == 0 {
		return least, true
	}
	n, err := parse(sign+significant+strings.Repeat("0", zeros), 10, 64)
	if err != nil {
		return beyond, true
	}
	return n, true
}
