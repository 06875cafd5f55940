package edge_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// A documented path answers each method that it lacks with 405 and with its methods, whether or not a body comes along. Core never sees it,
// and a connection closes whose body is not read.
func TestMethodNotAllowed(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	before := len(core.Requests())
	for _, path := range wire.Paths {
		target := strings.NewReplacer("{", "", "}", "").Replace(path.Pattern)
		key := ""
		if strings.HasPrefix(path.Pattern, "/v2/") {
			key = apiKey(core.AddKey(network.Test))
		}
		allows := func(method string) bool {
			return slices.Contains(path.Methods, method) || method == http.MethodHead && path.Methods[0] == http.MethodGet
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if allows(method) {
				continue
			}
			for _, body := range []string{"", "{}"} {
				got := g.send(t, request(method, target, key+jsonType, body))
				allow := slices.DeleteFunc(strings.Split(got.Header.Get("Allow"), ", "), func(name string) bool { return name == http.MethodHead && allows(name) })
				if unread := body != "" && slices.Contains([]string{"GET", "HEAD", "DELETE"}, method); (got.Header.Get("Connection") == "close") != unread {
					t.Errorf("%s %s with the body %q: Connection %q", method, path.Pattern, body, got.Header.Get("Connection"))
				}
				if got.Status != http.StatusMethodNotAllowed || !slices.Equal(allow, path.Methods) {
					t.Errorf("%s %s with the body %q: %d, Allow %q", method, path.Pattern, body, got.Status, got.Header.Get("Allow"))
				}
			}
		}
	}
	for _, path := range []string{"/auth/nothing", "/auth/sign-in", "/auth/sign-out/"} {
		if diff := cmp.Diff(notFound(), g.send(t, request("POST", path, jsonType, "{}"))); diff != "" {
			t.Errorf("POST %s: %s", path, diff)
		}
	}
	if after := len(core.Requests()); after != before {
		t.Errorf("core received %d requests", after-before)
	}
}
