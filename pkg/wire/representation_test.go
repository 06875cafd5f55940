package wire_test

import (
	"testing"

	"intents.internal/pkg/wire"
)

func TestPreferredCoding(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{
		"": "", "br": "", "identity": "", "*": "", "gzip": "gzip", "GZIP;q=1": "gzip", "gzip, zstd": "zstd", "zstd;q=0, gzip;q=0.5": "gzip",
		"gzip;q=0": "", "gzip;q=0.0": "", "gzip;q=": "gzip", "x-gzip": "", ",,gzip": "gzip",
	} {
		if got := wire.PreferredCoding(accept); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
}

func TestMatchesETag(t *testing.T) {
	t.Parallel()
	for ifNoneMatch, want := range map[string]bool{
		"": false, `"a"`: true, `W/"a"`: true, "*": true, `"b", W/"a"`: true, `"b"`: false, `a`: false, `w/"a"`: false, `"b",*`: true, `W/`: false,
	} {
		for _, etag := range []string{`"a"`, `W/"a"`} {
			if got := wire.MatchesETag(ifNoneMatch, etag); got != want {
				t.Errorf("%s against %s: %t", ifNoneMatch, etag, got)
			}
		}
	}
}
