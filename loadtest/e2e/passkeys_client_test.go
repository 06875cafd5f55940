package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/embedded"
)

// Both minor versions of better-auth's published client and its passkey plugin do with this service what they did with their own server.
func TestPasskeys_BetterAuthClient(t *testing.T) {
	journey(t)
	t.Parallel()
	recorded := must(filepath.Abs("testdata/better-auth-passkeys.json"))(t)
	const steps = "addPasskey\naddPasskey again\nlistUserPasskeys\nupdatePasskey\nsignIn.passkey\nsignIn.passkey, user not verified\n" +
		"signIn.passkey to go on\ndeletePasskey of another\nrefusals\ndeletePasskey\nsignIn.passkey, unknown\n"
	for version, packages := range map[string]string{"1.6.17": "js", "1.7.25": "js17"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			modules, err := embedded.NodeModules(packages)
			if err != nil {
				system.Skip(t, err.Error())
			}
			project := newNodeProjectWith(t, modules)
			project.env = append(slices.Clip(project.env), "BASE_URL="+checkedGateway(t), "PUBLIC_URL="+shared.Stack.Env().GatewayURL,
				"MAILBOX_URL="+serveMailbox(t), "AGE_URL="+serveAging(t), "RECORDED="+recorded)
			if diff := cmp.Diff(steps, project.run(t, "node", "passkeys.mjs")); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// serveAging is an address that makes the confirmations of the sessions of the person in its query older than ten minutes.
func serveAging(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ageConfirmations(t, r.URL.Query().Get("email"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func ageConfirmations(t *testing.T, email string) {
	t.Helper()
	system.Execute(t, shared.Stack.Env().DatabaseURL, `UPDATE sessions SET confirmed_at = confirmed_at - interval '11 minutes', created_at = sessions.created_at - interval '11 minutes'
		FROM accounts WHERE accounts.id = account_id AND email = $1`, email)
}
