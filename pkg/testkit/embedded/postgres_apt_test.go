package embedded_test

import (
	"testing"

	"intents.internal/pkg/testkit/embedded"
)

func TestParseURI(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int64{
		"'http://mirror.example/debian/pool/main/i/icu/libicu72_72.1-3_amd64.deb' libicu72_72.1-3_amd64.deb 9376020 SHA256:e239": 9376020,
		"Reading package lists...": 0,
		"'http://mirror.example/debian/dists/bookworm/InRelease' mirror.example_InRelease 0": 0,
		"": 0,
	} {
		got, ok := embedded.ParseURI(line)
		if got != want || ok != (want > 0) {
			t.Errorf("%q: got %d, %t; want %d", line, got, ok, want)
		}
	}
}

func TestParseGet(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"Get:3 http://mirror.example/debian bookworm/main amd64 libicu72 amd64 72.1-3 [9376 kB]": "3 libicu72",
		"Fetched 72.3 MB in 2s (36.1 MB/s)": "",
		"Get:1":                             "",
	} {
		number, name, ok := embedded.ParseGet(line)
		if got := number + " " + name; ok && got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t; want %q", line, got, ok, want)
		}
	}
}

func TestParseAptError(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"E: Unable to locate package postgresql":                                 "Unable to locate package postgresql",
		"W: Failed to fetch http://a/InRelease  Temporary failure resolving 'a'": "Failed to fetch http://a/InRelease  Temporary failure resolving 'a'",
		"W: Target Packages (main) is configured multiple times":                 "",
		"Reading package lists...":                                               "",
	} {
		text, ok := embedded.ParseAptError(line)
		if ok != (want != "") || ok && text != want {
			t.Errorf("%q: got %q, %t; want %q", line, text, ok, want)
		}
	}
}
