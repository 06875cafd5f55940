package e2e_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The session routes speak better-auth's protocol: its published client, with the plugins for API keys and wallets, does
// with them what its documentation says, and shows every refusal with its code.
func TestBetterAuthClient(t *testing.T) {
	journey(t)
	t.Parallel()
	project := newNodeProject(t)
	for script, steps := range map[string]string{
		"better-auth.mjs": "signsUpInAndOut\nmakesAndChangesKeys\nrotatesKeys\nendsSessions\nchangesPassword\nresetsPassword\nchangesAddress\nleaves\n",
		"siwe.mjs":        "signsIn\nisRefused\nlinksAndUnlinks\n",
		"members.mjs":     "sharesAnAccount\nkeepsTheirOwn\n",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			own := *project
			own.env = append(slices.Clip(own.env), "BASE_URL="+checkedGateway(t), "PUBLIC_URL="+shared.Stack.Env().GatewayURL, "MAILBOX_URL="+serveMailbox(t))
			if diff := cmp.Diff(steps, own.run(t, "node", script)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// checkedGateway is an address that passes everything on to the first gateway and holds each answer to openapi.json.
func checkedGateway(t *testing.T) string {
	t.Helper()
	gateway := must(url.Parse(shared.Stack.Env().GatewayURL))(t)
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(gateway) },
		Transport: checked{t},
	})
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}
