package caip_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"intents.internal/pkg/caip"
)

func TestParseChainID(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"eip155:1":                 true,
		"eip155:11155111":          true,
		"eip155:9999999999999999":  true,
		"eip155:10000000000000000": false, // 17 digits
		"eip155:0":                 false,
		"eip155:01":                false,
		"eip155:1a":                false,
		"eip155:":                  false,
		"eip155":                   false,
		"":                         false,
		":1":                       false,
		"eip155:1:2":               false,
		"EIP155:1":                 false,
		" eip155:1":                false,
		"eip155:1 ":                false,
		"ab:1":                     false,
		"abc:1":                    true,
		"abcdefghi:1":              false,
		"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp": true,
		"cosmos:Binance-Chain_Tigris":             true,
		"cosmos:" + strings.Repeat("a", 32):       true,
		"cosmos:" + strings.Repeat("a", 33):       false,
		"cosmos:a.b":                              false,
		"cosmos:ü":                                false,
	} {
		id, err := caip.ParseChainID(text)
		if (err == nil) != ok {
			t.Errorf("ParseChainID(%q) = %v, %v; want ok = %t", text, id, err, ok)
		}
		if ok && id.String() != text {
			t.Errorf("ParseChainID(%q).String() = %q", text, id)
		}
	}
}

func TestChainID_Number(t *testing.T) {
	t.Parallel()
	number, ok := caip.EIP155Chain(11155111).Number()
	if number != 11155111 || !ok {
		t.Errorf("Number() = %d, %t", number, ok)
	}
	if _, ok := (caip.ChainID{Namespace: "cosmos", Reference: "1"}).Number(); ok {
		t.Error("a cosmos chain has an EVM chain number")
	}
}

// The checksummed addresses are the examples of EIP-55.
func TestParseAddress(t *testing.T) {
	t.Parallel()
	for _, checksummed := range []string{
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
		"0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
		"0xde709f2102306220921060314715629080e2fb77", "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE",
		"0x0000000000000000000000000000000000000000",
	} {
		for _, given := range []string{checksummed, strings.ToLower(checksummed)} {
			got, err := caip.ParseAddress(given)
			if got != checksummed || err != nil {
				t.Errorf("ParseAddress(%q) = %q, %v; want %q", given, got, err, checksummed)
			}
		}
	}
	for _, given := range []string{
		"", "0x", "5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "0X5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
		"0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", // one letter raised
		"0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED", // all raised is a wrong checksum too
		"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae", "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaedd",
		"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaeg",
	} {
		if got, err := caip.ParseAddress(given); err == nil {
			t.Errorf("ParseAddress(%q) = %q, want an error", given, got)
		}
	}
}

func TestParseAccountID(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"eip155:1:0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed": "eip155:1:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"eip155:1:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed": "eip155:1:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"hedera:mainnet:0.0.1234567890-zbhlt":                 "hedera:mainnet:0.0.1234567890-zbhlt",
		"cosmos:hub-3:" + strings.Repeat("a", 128):            "cosmos:hub-3:" + strings.Repeat("a", 128),
		"cosmos:hub-3:" + strings.Repeat("a", 129):            "",
		"cosmos:hub-3:":  "",
		"cosmos:hub-3":   "",
		"cosmos:hub:3:x": "",
		"":               "",
		"eip155:1:0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed":  "",
		"eip155:1:0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed ": "",
	} {
		id, err := caip.ParseAccountID(text)
		if id.String() != want || (err == nil) != (want != "") {
			t.Errorf("ParseAccountID(%q) = %q, %v; want %q", text, id, err, want)
		}
	}
}

// Any spelling of an address is one address once read.
func TestParseAddress_OneSpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lower := rapid.StringMatching(`0x[0-9a-f]{40}`).Draw(t, "address")
		checksummed, err := caip.ParseAddress(lower)
		if err != nil || !strings.EqualFold(checksummed, lower) {
			t.Fatalf("ParseAddress(%q) = %q, %v", lower, checksummed, err)
		}
		again, err := caip.ParseAddress(checksummed)
		if again != checksummed || err != nil {
			t.Fatalf("ParseAddress(%q) = %q, %v", checksummed, again, err)
		}
	})
}

var (
	chainGrammar   = regexp.MustCompile(`^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$`)
	eip155Grammar  = regexp.MustCompile(`^eip155:[1-9][0-9]{0,15}$`)
	accountGrammar = regexp.MustCompile(`^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}:[-.%a-zA-Z0-9]{1,128}$`)
)

// The hand-written parser takes what the grammar's regular expression takes, and nothing else.
func FuzzParseChainID(f *testing.F) {
	for _, seed := range []string{"eip155:1", "cosmos:hub-3", "eip155:01", "a:b", "abc:\n", "eip155:1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := chainGrammar.MatchString(text)
		if strings.HasPrefix(text, "eip155:") {
			want = eip155Grammar.MatchString(text)
		}
		id, err := caip.ParseChainID(text)
		if (err == nil) != want {
			t.Fatalf("ParseChainID(%q) = %v, %v; the grammar says %t", text, id, err, want)
		}
		if err == nil && id.String() != text {
			t.Fatalf("ParseChainID(%q).String() = %q", text, id)
		}
	})
}

func FuzzParseAccountID(f *testing.F) {
	for _, seed := range []string{"eip155:1:0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "cosmos:hub-3:x", "a:b:c", ":::"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := caip.ParseAccountID(text)
		if err != nil {
			return
		}
		if !accountGrammar.MatchString(text) {
			t.Fatalf("ParseAccountID(%q) takes what the grammar does not", text)
		}
		again, err := caip.ParseAccountID(id.String())
		if again != id || err != nil {
			t.Fatalf("ParseAccountID(%q) = %v, %v; want %v", id, again, err, id)
		}
	})
}

// Addresses with the same last digits share a place among the remembered spellings, and none is taken for another.
func TestParseAddress_CacheCollision(t *testing.T) {
	t.Parallel()
	const ends = "abc"
	spelled := map[string]string{}
	for n := range 200 {
		given := fmt.Sprintf("0x%037x%s", n, ends)
		sum, err := caip.ParseAddress(given)
		if err != nil || !strings.EqualFold(sum, given) {
			t.Fatalf("ParseAddress(%q) = %q, %v", given, sum, err)
		}
		spelled[given] = sum
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for given, want := range spelled {
				for _, text := range []string{given, want} {
					if got, err := caip.ParseAddress(text); got != want || err != nil {
						t.Errorf("ParseAddress(%q) = %q, %v; want %q", text, got, err, want)
					}
				}
				if wrong := "0x" + strings.ToUpper(want[2:]); wrong != want {
					if got, err := caip.ParseAddress(wrong); err == nil {
						t.Errorf("ParseAddress(%q) = %q, want an error", wrong, got)
					}
				}
			}
		})
	}
	readers.Wait()
}

func BenchmarkParseAddress(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := caip.ParseAddress("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"); err != nil {
			b.Fatal(err)
		}
	}
}
