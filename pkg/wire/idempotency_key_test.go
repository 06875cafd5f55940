package wire_test

import (
	"regexp"
	"strings"
	"testing"

	"intents.internal/pkg/wire"
)

func TestParseIdempotencyKey(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", wire.MaxIdempotencyKeyLength)
	for value, want := range map[string]string{
		"order-1": "order-1", `"order-1"`: "order-1", " a b ": "a b", longest: longest, `"` + longest + `"`: longest,
		"": "", `""`: "", "   ": "", longest + "k": "", `a"b`: "", `a\b`: "", "é": "", "a\x00": "", "a\tb": "", `"`: "",
	} {
		if key, ok := wire.ParseIdempotencyKey(value); key != want || ok != (want != "") {
			t.Errorf("ParseIdempotencyKey(%q) = %q, %t; want %q", value, key, ok, want)
		}
	}
}

var keyCharacters = regexp.MustCompile(`^[ !#-\[\]-~]{1,255}$`)

func FuzzParseIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"order-1", `"order-1"`, `"`, `""`, "a\x00b", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, ok := wire.ParseIdempotencyKey(value)
		if ok && !keyCharacters.MatchString(key) {
			t.Fatalf("%q gives the key %q", value, key)
		}
		if !ok && keyCharacters.MatchString(value) && strings.Trim(value, " ") != "" {
			t.Fatalf("%q is refused", value)
		}
	})
}
