package apikey_test

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

var (
	grammar = regexp.MustCompile(`^sk_(test|live)_[A-Za-z0-9]{64}\z`)
	sixty4  = strings.Repeat("aZ09", 16)
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"sk_test_" + sixty4:           true,
		"sk_live_" + sixty4:           true,
		"sk_prod_" + sixty4:           false,
		"SK_TEST_" + sixty4:           false,
		"sk_test_" + sixty4[1:]:       false,
		"sk_test_" + sixty4 + "a":     false,
		"sk_test_" + sixty4[1:] + "-": false,
		"sk_test_" + sixty4[1:] + " ": false,
		"sk_test_" + sixty4[2:] + "é": false,
		" sk_test_" + sixty4[1:]:      false,
		"":                            false,
		strings.Repeat("x", 4096):     false,
	} {
		key, err := apikey.Parse(text)
		if (err == nil) != ok {
			t.Errorf("Parse(%q): %v; want ok = %t", text, err, ok)
		}
		if ok && (key.Reveal() != text || key.Hash() != sha256.Sum256([]byte(text)) || key.Start() != text[:12]) {
			t.Errorf("Parse(%q) = %#v", text, key)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	counts := map[rune]int{}
	for range 2000 {
		for _, env := range []network.Environment{network.Test, network.Live} {
			key := apikey.New(env)
			if !grammar.MatchString(key.Reveal()) || key.Environment() != env || seen[key.Reveal()] {
				t.Fatalf("New(%s) = %q", env, key.Reveal())
			}
			seen[key.Reveal()] = true
			for _, c := range key.Reveal()[len("sk_test_"):] {
				counts[c]++
			}
		}
	}
	// 256,000 characters over 62 letters: 4,129 each. Ten standard deviations either way would be a biased source.
	if len(counts) != 62 {
		t.Errorf("%d different characters, want 62", len(counts))
	}
	for c, n := range counts {
		if n < 3490 || n > 4770 {
			t.Errorf("%q came %d times of 4,129 expected", c, n)
		}
	}
}

func TestKey_Redacted(t *testing.T) {
	t.Parallel()
	key := apikey.New(network.Live)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("test", "key", key)
	for _, shown := range []string{fmt.Sprint(key), fmt.Sprintf("%v %+v %#v %s %q", key, key, key, key, key), log.String()} {
		if strings.Contains(shown, key.Reveal()[8:]) || strings.Contains(shown, key.Reveal()[12:40]) {
			t.Errorf("the key shows in %q", shown)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("sk_test_" + sixty4)
	f.Add("sk_live_" + sixty4 + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := apikey.Parse(text); (err == nil) != grammar.MatchString(text) {
			t.Fatalf("Parse(%q): %v; the grammar says %t", text, err, grammar.MatchString(text))
		}
	})
}
