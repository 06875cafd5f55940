package e2e_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/client/webhook"
)

// The key of webhooks' secrets is replaced as deploy/security.md says, core by core. An endpoint of before hears of what happens after
// every restart, signed with the secret that its owner has.
func TestWebhooks_KeyReplaced(t *testing.T) {
	journey(t)
	t.Parallel()
	dir := t.TempDir()
	settings := filepath.Join(dir, "core.env")
	configure := func(current, previous string) {
		t.Helper()
		text := fmt.Sprintf("CORE_WEBHOOK_SECRET_KEY=%s\nCORE_WEBHOOK_SECRET_KEY_PREVIOUS=%s\n", current, previous)
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old, next := hex.EncodeToString([]byte(strings.Repeat("old key.", 4))), hex.EncodeToString([]byte(strings.Repeat("new key.", 4)))
	configure(old, "")
	s, log := startStack(t, stack.Config{Data: filepath.Join(dir, "data"), Cores: 2, CoreEnv: []string{"CORE_ENV_FILE=" + settings}})
	me := apiClient(t, s.Env().GatewayURL, s.Env().TestKey)
	recorded := system.StartReceiver(t)
	endpoints := []*intents.CreatedWebhook{createWebhook(t, me, recorded.URL)}
	cursor := must(me.Events.List(t.Context(), intents.EventQuery{After: intents.Now}))(t).Next
	sealed := strings.Count(log.String(), "all webhook secrets are sealed under the current key")
	for _, step := range []struct{ current, previous string }{{old, next}, {next, old}, {next, old}, {next, ""}} {
		configure(step.current, step.previous)
		for _, core := range []string{stack.Core, stack.CoreName(2)} {
			if err := s.Restart(t.Context(), core); err != nil {
				t.Fatal(err)
			}
			pay(t, me, 1)
			page := nextEvents(t, me, cursor)
			cursor = page.Next
			all := awaitDeliveries(t, recorded, page.Events[0].ID, len(endpoints))
			for _, made := range endpoints {
				verifies := func(d system.Delivery) bool {
					_, err := webhook.Verify(d.Body, d.Header, made.Secret)
					return err == nil
				}
				if !slices.ContainsFunc(all, verifies) {
					t.Errorf("no delivery of %d verifies with the secret of %s", len(all), made.ID)
				}
			}
		}
		endpoints = append(endpoints, createWebhook(t, me, recorded.URL))
	}
	if got := strings.Count(log.String(), "all webhook secrets are sealed under the current key") - sealed; got != 6 {
		t.Errorf("cores say %d times that the previous key is not needed, want twice for each of three steps", got)
	}
}
