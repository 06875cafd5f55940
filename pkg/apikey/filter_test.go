package apikey_test

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"testing"

	"intents.internal/pkg/apikey"
)

// hashOf is that of the n-th of many keys.
func hashOf(n uint64) apikey.Hash { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, n)) }

func TestFilter_FalsePositives(t *testing.T) {
	t.Parallel()
	const added, others = 20_000, 200_000
	made := apikey.NewFilter(added)
	for n := range uint64(added) {
		made.Add(hashOf(n))
	}
	text, err := made.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if bits := 8 * len(text) / added; bits > 20 {
		t.Errorf("a key takes %d bits", bits)
	}
	var read apikey.Filter
	if err := read.UnmarshalBinary(text); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*apikey.Filter{"made": made, "read": &read} {
		for n := range uint64(added) {
			if !f.Has(hashOf(n)) {
				t.Fatalf("%s: key %d is not there", name, n)
			}
		}
		mistaken := 0
		for n := range uint64(others) {
			if f.Has(hashOf(added + n)) {
				mistaken++
			}
		}
		if mistaken > others*3/10_000 { // 20 are to be expected
			t.Errorf("%s: %d of %d others are taken for its own", name, mistaken, others)
		}
	}
}

func TestFilter_IndependentFalsePositives(t *testing.T) {
	t.Parallel()
	const added, others = 2000, 200_000
	one, other := apikey.NewFilter(added/4), apikey.NewFilter(added/4) // too small, so that there are mistakes enough
	for n := range uint64(added) {
		one.Add(hashOf(n))
		other.Add(hashOf(n))
	}
	mistaken, both := 0, 0
	for n := uint64(added); n < others; n++ {
		if one.Has(hashOf(n)) {
			mistaken++
			if other.Has(hashOf(n)) {
				both++
			}
		}
	}
	if mistaken < 1000 || both > mistaken*9/10 {
		t.Errorf("of %d mistakes the other filter makes %d", mistaken, both)
	}
}

func TestFilter_Concurrent(t *testing.T) {
	t.Parallel()
	f := apikey.NewFilter(1000)
	var work sync.WaitGroup
	for n := range uint64(4) {
		work.Go(func() {
			for m := range uint64(250) {
				f.Add(hashOf(n*250 + m))
				if !f.Has(hashOf(n*250 + m)) {
					t.Errorf("key %d is not there", n*250+m)
				}
			}
		})
	}
	work.Wait()
}

func TestFilter_UnmarshalInvalid(t *testing.T) {
	t.Parallel()
	text, err := apikey.NewFilter(1000).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var f apikey.Filter
	for _, size := range []int{0, 7, 8, 20, len(text) - 1} {
		if err := f.UnmarshalBinary(text[:size]); err == nil {
			t.Errorf("%d of %d bytes are taken for a filter", size, len(text))
		}
	}
}
