package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A start of core makes no document: one is made when it is first asked for, and once.
func TestAsset_FirstUse(t *testing.T) {
	t.Parallel()
	body, made := bytes.Repeat([]byte("a sentence that repeats. "), 1000), 0
	a := newAsset("text/plain", func() ([]byte, error) {
		made++
		return body, nil
	})
	if made != 0 {
		t.Error("the asset is made before anybody asks for it")
	}
	open := map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
		"":     func(r io.Reader) (io.Reader, error) { return r, nil },
	}
	for coding, decode := range open {
		for range 2 {
			request, response := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), httptest.NewRecorder()
			request.Header.Set("Accept-Encoding", coding)
			if err := a.get(response, request); err != nil {
				t.Fatal(err)
			}
			if got := response.Header().Get("Content-Encoding"); got != coding {
				t.Errorf("Content-Encoding %q, want %q", got, coding)
			}
			decoded, err := decode(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(decoded); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%q: %d bytes, %v, not the asset's %d", coding, len(got), err, len(body))
			}
		}
	}
	if made != 1 {
		t.Errorf("the asset was made %d times", made)
	}
}
