package evm

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Quantity is a JSON-RPC quantity of at most 64 bits: 0x and hexadecimal digits without leading zeros.
type Quantity uint64

// UnmarshalText decodes a quantity. hexutil would accept an empty text as 0.
func (q *Quantity) UnmarshalText(text []byte) error {
	number, err := hexutil.DecodeUint64(string(text))
	*q = Quantity(number)
	return err
}

// Data is JSON-RPC data: 0x and two hexadecimal digits a byte.
type Data []byte

// UnmarshalText decodes data.
func (d *Data) UnmarshalText(text []byte) error {
	bytes, err := hexutil.Decode(string(text))
	*d = bytes
	return err
}

// amount is a quantity of at most 256 bits.
type amount big.Int

func (a *amount) UnmarshalText(text []byte) error {
	number, err := hexutil.DecodeBig(string(text))
	if err != nil {
		return err
	}
	*a = amount(*number)
	return nil
}

// lastSecond is 9999-12-31T23:59:59Z, the last time that both RFC 3339 and Postgres can represent.
const lastSecond = 253402300799

var errMissing = errors.New("is missing")

// fields keeps the first error of an object's members.
type fields struct{ err error }

func (f *fields) fail(name string, err error) {
	if f.err == nil {
		f.err = fmt.Errorf("%s %w", name, err)
	}
}

// value returns a required member.
func value[T any](f *fields, name string, member *T) (v T) {
	if member == nil {
		f.fail(name, errMissing)
		return v
	}
	return *member
}

// blockNumber returns a required block number, which must fit the database's signed 64 bits.
func (f *fields) blockNumber(name string, member *Quantity) uint64 {
	number := uint64(value(f, name, member))
	if number > math.MaxInt64 {
		f.fail(name, errors.New("is over 63 bits"))
	}
	return number
}

func (f *fields) time(name string, member *Quantity) time.Time {
	seconds := uint64(value(f, name, member))
	if seconds > lastSecond {
		f.fail(name, errors.New("is after the year 9999"))
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}
