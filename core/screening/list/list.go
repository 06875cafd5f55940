// Package list is the operator's list of addresses: the files that state it, and whether an address is on it.
//
// It knows neither who asks nor what follows. Its errors name a file and a line, never what the line contains.
package list

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"intents.internal/pkg/caip"
)

// Address is an EVM address.
type Address [20]byte

// ParseAddress parses 0x and 40 hexadecimal digits of any case.
func ParseAddress(text string) (a Address, ok bool) {
	if len(text) != len("0x")+2*len(a) || text[0] != '0' || text[1]|0x20 != 'x' {
		return a, false
	}
	for n := range a {
		high, low := digits[text[2+2*n]], digits[text[3+2*n]]
		if high|low > 0x0f {
			return a, false
		}
		a[n] = high<<4 | low
	}
	return a, true
}

// digits are the values of hexadecimal digits, 0xff for all other characters.
var digits = func() (table [256]byte) {
	for c := range table {
		table[c] = 0xff
		if value := strings.IndexByte("0123456789abcdef", byte(c)|0x20); value >= 10 {
			table[c] = byte(value)
		}
	}
	for c := byte('0'); c <= '9'; c++ {
		table[c] = c - '0'
	}
	return table
}()

// String is the address in lower case.
func (a Address) String() string { return "0x" + hex.EncodeToString(a[:]) }

// everyChain is the chain of an entry that means all EVM chains.
const everyChain = 0

// entry is an address of a file.
type entry struct {
	address Address
	// chain is the EIP-155 number, or everyChain.
	chain uint64
	// label is an index of the file's texts.
	label, line uint32
	// exception takes the address from the list.
	exception bool
}

func compareEntries(a, b entry) int {
	return cmp.Or(bytes.Compare(a.address[:], b.address[:]), cmp.Compare(a.chain, b.chain), compareBool(a.exception, b.exception))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// List is what the files state together. It never changes, so that everybody who has it sees the same.
type List struct {
	// everywhere are listed on every chain, with the indexes of their labels.
	everywhere map[Address]uint32
	// bound are listed on one chain, ascending.
	bound []entry
	texts []string
	// oldest is when the oldest file was modified.
	oldest time.Time
}

// New joins files. An exception of any of them takes an address from all.
func New(files []*File) *List {
	l := &List{}
	total, exceptions := 0, map[Address]bool{}
	for _, f := range files {
		total += len(f.entries)
		for _, e := range f.entries {
			if e.exception {
				exceptions[e.address] = true
			}
		}
		if l.oldest.IsZero() || f.Modified.Before(l.oldest) {
			l.oldest = f.Modified
		}
	}
	all := make([]entry, 0, total)
	for _, f := range files {
		first := uint32(len(l.texts)) //nolint:gosec // a file has a million labels at most
		l.texts = append(l.texts, f.texts...)
		for _, e := range f.entries {
			if !exceptions[e.address] {
				e.label += first
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, compareEntries) // of the same entry in several files the first one's label stays
	all = slices.CompactFunc(all, func(a, b entry) bool { return compareEntries(a, b) == 0 })
	l.fill(all)
	return l
}

// fill takes sorted entries apart.
func (l *List) fill(all []entry) {
	everywhere := 0
	for _, e := range all {
		if e.chain == everyChain {
			everywhere++
		}
	}
	l.everywhere = make(map[Address]uint32, everywhere)
	for _, e := range all {
		if e.chain == everyChain {
			l.everywhere[e.address] = e.label
		} else {
			l.bound = append(l.bound, e)
		}
	}
}

// Len is the number of addresses, one that is listed on several chains once for each.
func (l *List) Len() int { return len(l.everywhere) + len(l.bound) }

// Oldest is when the oldest file was modified, zero without a file.
func (l *List) Oldest() time.Time { return l.oldest }

// Find returns the label of an account that is listed, empty for none.
func (l *List) Find(account caip.AccountID) (label string, listed bool) {
	address, ok := ParseAddress(account.Address)
	if !ok || account.Chain.Namespace != caip.EIP155 {
		return "", false
	}
	if n, found := l.everywhere[address]; found {
		return l.texts[n], true
	}
	if len(l.bound) == 0 {
		return "", false
	}
	chain, _ := account.Chain.Number()
	n, found := slices.BinarySearchFunc(l.bound, entry{address: address, chain: chain}, compareEntries)
	if !found {
		return "", false
	}
	return l.texts[l.bound[n].label], true
}

// Addresses returns what is listed in the notation of the files, ascending.
func (l *List) Addresses() []string {
	all := make([]string, 0, l.Len())
	for a := range l.everywhere {
		all = append(all, a.String())
	}
	for _, e := range l.bound {
		all = append(all, e.String())
	}
	slices.Sort(all)
	return all
}
