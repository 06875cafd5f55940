package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/web/webtest"
)

// HEAD is answered as GET by every operation of the document, without the body.
func TestHead_EveryRoute(t *testing.T) {
	t.Parallel()
	operations, err := webtest.DocumentedOperations()
	if err != nil {
		t.Fatal(err)
	}
	s := webtest.Start(t, webtest.WithWebhooks(t))
	owner, key := s.NewOwner(t)
	_, transfer, _ := s.CreateTransfer(t, webtest.TransferBody, webtest.Keyed(owner, "test")...)
	ann := s.SignUp(t, "ann@example.com")
	head := func(method, path string) (int, http.Header) {
		header := ann
		if strings.HasPrefix(path, "/v2/") {
			header = key
		}
		response := s.Send(t, method, path, "", append(slices.Clip(header), "Accept-Encoding", "identity")...)
		if body := webtest.ReadAll(t, response); method == http.MethodHead && body != "" {
			t.Errorf("HEAD %s has a body", path)
		}
		response.Header.Del("Date")
		return response.StatusCode, response.Header
	}
	for name, operation := range operations {
		template, reads := strings.CutPrefix(name, "GET ")
		if !reads || slices.Contains(webtest.AnsweredByGateway, operation.OperationID) {
			continue
		}
		path := strings.NewReplacer("/v2/transfers/{id}", transfer, "{id}", "0199d3b4-0000-7000-8000-000000000001").Replace(template)
		status, want := head(http.MethodGet, path)
		again, got := head(http.MethodHead, path)
		if diff := cmp.Diff(want, got); diff != "" || status != again {
			t.Errorf("%s: GET %d, HEAD %d (-GET +HEAD):\n%s", path, status, again, diff)
		}
	}
}
