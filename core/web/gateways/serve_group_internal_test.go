package gateways

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"intents.internal/pkg/wire"
)

// Whatever a batch has in it, only requests to create an intent come out, each with a body as long as its frame leaves.
func FuzzReadBatch(f *testing.F) {
	message := func(method, path string, fields ...string) (message []byte) {
		message = wire.AppendField(wire.AppendField(nil, wire.FieldMethod, method), wire.FieldPath, path)
		for field := range slices.Chunk(fields, 2) {
			message = wire.AppendField(message, field[0], field[1])
		}
		return wire.AppendBody(message, "{}")
	}
	usual := message("POST", "/v2/transfers", "X-Request-Id", "1")
	for _, other := range [][]byte{
		usual, append(slices.Clone(usual), usual...), message("POST", "/v2/transfers?a=b", "content-length", "1", "Content-Length", "2"),
		message("GET", "/internal/ready"), message("POST", "/v2/%74ransfers"), usual[:20],
		{0},
		{},
	} {
		f.Add(other)
	}
	f.Fuzz(func(t *testing.T, other []byte) {
		batch := wire.AppendFrame(wire.AppendFrame(nil, 0, usual), 1, other)
		requests, err := readGroup(httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathBatch, bytes.NewReader(batch)))
		if err != nil {
			return
		}
		for _, r := range requests {
			body, err := io.ReadAll(r.Body)
			if err != nil || int64(len(body)) != r.ContentLength || r.Method != http.MethodPost || r.URL.Path != "/v2/transfers" {
				t.Errorf("%s %s with %d of %d bytes, %v", r.Method, r.URL, len(body), r.ContentLength, err)
			}
			for name, values := range r.Header {
				if len(values) == 0 || strings.HasPrefix(name, ":") {
					t.Errorf("header %q: %q", name, values)
				}
			}
		}
	})
}
