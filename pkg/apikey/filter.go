package apikey

import (
	"crypto/rand"
	"errors"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"
)

const (
	// mistakes is the false positive rate of a full Filter. It costs 20 bits per key.
	mistakes = 1e-4
	saltLen  = 8
)

// Filter is a Bloom filter of keys: it contains every key that was added, and has a false positive for one in 10,000 other keys.
// A random salt decides which these are, so that false positives collected for one Filter are useless for the next. It is safe
// for concurrent use.
type Filter struct {
	salt [saltLen]byte
	mu   sync.RWMutex
	bits *bloom.BloomFilter
}

// NewFilter creates an empty Filter for this many keys. More can be added, which raises the false positive rate.
func NewFilter(keys int) *Filter {
	f := &Filter{bits: bloom.NewWithEstimates(uint(max(1, keys)), mistakes)}
	_, _ = rand.Read(f.salt[:]) // never fails: crypto/rand ends the program instead
	return f
}

// Add adds a key.
func (f *Filter) Add(hash Hash) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bits.Add(f.salted(hash))
}

// Has reports whether the key was added, or is a false positive.
func (f *Filter) Has(hash Hash) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.bits.Test(f.salted(hash))
}

func (f *Filter) salted(hash Hash) []byte { return append(f.salt[:], hash[:]...) }

// MarshalBinary encodes the Filter for UnmarshalBinary.
func (f *Filter) MarshalBinary() ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	bits, err := f.bits.MarshalBinary()
	return append(f.salt[:], bits...), err
}

// UnmarshalBinary replaces the Filter with one that MarshalBinary encoded.
func (f *Filter) UnmarshalBinary(data []byte) error {
	if len(data) < saltLen {
		return errors.New("a filter of keys is cut off")
	}
	bits := new(bloom.BloomFilter)
	if err := bits.UnmarshalBinary(data[saltLen:]); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.salt, f.bits = [saltLen]byte(data), bits
	return nil
}
