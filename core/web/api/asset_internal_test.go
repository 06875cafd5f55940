package api

import (
	"net/http/httptest"
	"testing"
)

// A start of core makes no document: one is made when it is first asked for, and once.
func TestAsset_FirstUse(t *testing.T) {
	t.Parallel()
	made := 0
	a := newAsset("text/plain", func() ([]byte, error) {
		made++
		return []byte("a document"), nil
	})
	if made != 0 {
		t.Error("the asset is made before anybody asks for it")
	}
	for range 2 {
		response := httptest.NewRecorder()
		if err := a.get(response, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)); err != nil {
			t.Fatal(err)
		}
		if got := response.Body.String(); got != "a document" {
			t.Errorf("the asset is %q", got)
		}
	}
	if made != 1 {
		t.Errorf("the asset was made %d times", made)
	}
}
