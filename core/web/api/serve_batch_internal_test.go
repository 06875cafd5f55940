package api

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"intents.internal/pkg/wire"
)

// Whatever a batch has in it, only requests to create an intent come out, each with a body as long as its frame leaves.
func FuzzReadBatch(f *testing.F) {
	head := "POST /v2/transfers HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
	for _, message := range []string{
		head + "{}", head + "{}" + head + "{}", "POST /v2/transfers HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /v2/transfers HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "GET /internal/ready HTTP/1.1\r\n\r\n", "\r\n\r\n", "",
	} {
		f.Add([]byte(message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		batch := wire.AppendFrame(wire.AppendFrame(nil, 0, []byte(head+"{}")), 1, message)
		requests, err := readBatch(httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathBatch, bytes.NewReader(batch)))
		if err != nil {
			return
		}
		for _, r := range requests {
			body, err := io.ReadAll(r.Body)
			if err != nil || int64(len(body)) != r.ContentLength || r.Method != http.MethodPost || r.URL.Path != "/v2/transfers" {
				t.Errorf("%s %s with %d of %d bytes, %v", r.Method, r.URL, len(body), r.ContentLength, err)
			}
		}
	})
}
