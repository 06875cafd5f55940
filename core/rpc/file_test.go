package rpc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/rpc"
	"intents.internal/pkg/caip"
)

func readText(t *testing.T, text string) (rpc.Providers, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rpc.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return rpc.ReadFile(path)
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	got, err := readText(t, `{
		"eip155:1": ["https://a.example/v3/key", {"url": "https://user:pass@b.example", "maxRange": 500, "requestsPerSecond": 0.5}],
		"eip155:10": [{"url": "http://c.example:8545?apikey=x"}]
	}`)
	if err != nil {
		t.Fatal(err)
	}
	want := rpc.Providers{
		caip.EIP155Chain(1): {
			{URL: "https://a.example/v3/key"},
			{URL: "https://user:pass@b.example", MaxRange: 500, RequestsPerSecond: 0.5},
		},
		caip.EIP155Chain(10): {{URL: "http://c.example:8545?apikey=x"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadFile_Faults(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, fault string }{
		{`{`, "line 1: must be one JSON object"},
		{"{\n\"eip155:1\": [\"https://a.example/s3cret\"],\n\"eip155:1\": []}", "line 3: must be one JSON object"},
		{`null`, "must be one JSON object"},
		{`[]`, "must be one JSON object"},
		{`{"https://a.example/s3cret": ["https://a.example"]}`, "[redacted]: must be a chain id"},
		{`{"1": ["https://a.example"]}`, "1: must be a chain id"},
		{`{"cosmos:hub": ["https://a.example"]}`, "cosmos:hub: must be a chain id"},
		{`{"eip155:1": []}`, "eip155:1: must have a list"},
		{`{"eip155:1": "https://a.example/s3cret"}`, "eip155:1: must have a list"},
		{`{"eip155:1": [7]}`, "eip155:1[0]: must be a URL, or an object"},
		{`{"eip155:1": [null]}`, "eip155:1[0]: must be a URL, or an object"},
		{`{"eip155:1": [{"url": "https://a.example/s3cret", "https://a.example/s3cret": 1}]}`, "eip155:1[0]: must be a URL, or an object"},
		{`{"eip155:1": [{"url": "https://a.example", "maxRange": -1}]}`, "eip155:1[0]: must be a URL, or an object"},
		{`{"eip155:1": [{"url": "https://a.example", "maxRange": 0}]}`, "eip155:1[0]: maxRange must be from 1"},
		{`{"eip155:1": [{"url": "https://a.example", "requestsPerSecond": 0}]}`, "eip155:1[0]: requestsPerSecond must be over 0"},
		{`{"eip155:1": [{"maxRange": 1}]}`, "eip155:1[0]: the URL must begin with"},
		{`{"eip155:1": ["wss://a.example/s3cret"]}`, "eip155:1[0]: the URL must begin with"},
		{`{"eip155:1": ["https:///s3cret"]}`, "eip155:1[0]: the URL has no host"},
		{`{"eip155:1": ["https://a.example/%zzs3cret"]}`, "eip155:1[0]: is not a valid URL"},
		{`{"eip155:1": ["https://a.example#s3cret"]}`, "eip155:1[0]: the URL has a fragment"},
		{`{"eip155:1": ["https://a.example/s3cret"], "eip155:2": ["https://b.example", "https://a.example/s3cret"]}`, "eip155:2[1]: the URL at a.example is the same as at eip155:1[0]"},
	}
	for _, test := range tests {
		_, err := readText(t, test.text)
		switch {
		case err == nil:
			t.Errorf("%s: no error", test.text)
		case !strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%s: got %q, want %q and no secret", test.text, err, test.fault)
		}
	}
	_, err := readText(t, `{"eip155:1": [7, "ftp://a"], "eip155:x": ["https://a.example"]}`)
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all faults at once: %v", err)
	}
}
