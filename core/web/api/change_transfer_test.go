package api_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// Every route that changes the intent it names, as openapi.json lists them, refuses keys of the other environment and hides
// other accounts' intents; the intent stays as it was.
func TestChangeTransfer_Environment(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	_, testLocation, _ := s.CreateTransfer(t, webtest.TransferBody, webtest.Keyed(owner, "test")...)
	_, liveLocation, _ := s.CreateTransfer(t, webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "5", webtest.BobOnMainnet, "", "", ""), webtest.Keyed(owner, "live")...)
	state := func() string {
		return pgtest.LookUp[string](t, s.Store, `SELECT string_agg(to_jsonb(i)::text, ' ' ORDER BY id) FROM transfers i`)
	}
	before, routes := state(), 0
	for path, operations := range document.Paths {
		rest, named := strings.CutPrefix(path, "/v2/transfers/{id}")
		for method := range operations {
			if !named || method == "parameters" || method == "get" {
				continue
			}
			routes++
			for _, c := range []struct {
				location, environment string
				want                  webtest.Answer
			}{
				{liveLocation, "test", webtest.Want(t, 403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","chainId":1,"keyEnv":"test",
					"message":"Chain eip155:1 is a live chain and this is a test key; use a live key."}`)},
				{testLocation, "live", webtest.Want(t, 403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","chainId":11155111,"keyEnv":"live",
					"message":"Chain eip155:11155111 is a test chain and this is a live key; use a test key."}`)},
			} {
				webtest.Same(t, method+" "+path, c.want, s.Call(t, strings.ToUpper(method), c.location+rest, "", webtest.Keyed(owner, c.environment)...))
			}
			webtest.Same(t, "another account's "+path, webtest.Refused(t, 404, "NOT_FOUND", "The account has no such transfer."),
				s.Call(t, strings.ToUpper(method), liveLocation+rest, "", webtest.Keyed(uuid.New(), "test")...))
		}
	}
	if diff := cmp.Diff(before, state()); diff != "" || routes == 0 {
		t.Errorf("%d routes (-before +after):\n%s", routes, diff)
	}
}
