package apikey

import (
	"crypto/rand"
	"errors"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"
)

const (
	// mistakes is the share of other keys that a full Filter takes for its own; a key takes 20 bits at that.
	mistakes = 1e-4
	saltLen  = 8
)

// Filter is a set of keys that may be wrong in one way, a Bloom filter: it has every key that was added to it, and by mistake
// one in 10,000 of the others. Which these are depends on a random salt, so that nobody can collect them for the next Filter.
// It is safe for concurrent use.
type Filter struct {
	salt [saltLen]byte
	mu   sync.RWMutex
	bits *bloom.BloomFilter
}

// NewFilter makes an empty Filter for so many keys. More can be added, for more mistakes.
func NewFilter(keys int) *Filter {
	f := &Filter{bits: bloom.NewWithEstimates(uint(max(1, keys)), mistakes)}
	_, _ = rand.Read(f.salt[:]) // never fails: crypto/rand ends the program instead
	return f
}

// Add puts a key in.
func (f *Filter) Add(hash Hash) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bits.Add(f.salted(hash))
}

// Has reports whether the key was added, or is taken for one that was.
func (f *Filter) Has(hash Hash) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.bits.Test(f.salted(hash))
}

func (f *Filter) salted(hash Hash) []byte { return append(f.salt[:], hash[:]...) }

// MarshalBinary writes the Filter for UnmarshalBinary.
func (f *Filter) MarshalBinary() ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	bits, err := f.bits.MarshalBinary()
	return append(f.salt[:], bits...), err
}

// UnmarshalBinary reads what MarshalBinary wrote, in place of what the Filter was.
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
