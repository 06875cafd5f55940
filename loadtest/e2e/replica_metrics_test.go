package e2e_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/asynctest"
	"intents.internal/pkg/embedded"
)

// startBesideReplica runs one more core on the shared database until the test ends, one that exports what only cores with a
// replica do, and returns its operations listener. The replica is one that it cannot use: the primary itself.
func startBesideReplica(t *testing.T) (operations string) {
	t.Helper()
	address := func() string {
		port, err := embedded.FreePort("")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	operations = address()
	env := running.Env()
	var log asynctest.Buffer
	process, err := embedded.StartProcess(embedded.Command{
		Name: "core beside a replica", Path: filepath.Join(binaries, "core"), Args: []string{"serve"},
		Env: append(stack.Environ(),
			"CORE_LISTEN="+address(), "CORE_OPS_LISTEN="+operations, "CORE_GATEWAY_SECRET="+rand.Text()+rand.Text(),
			"CORE_DATABASE_URL="+env.DatabaseURL, "CORE_READ_DATABASE_URL="+env.DatabaseURL, "CORE_REDIS_URL="+env.RedisURL),
		Output: func(line string) { fmt.Fprintln(&log, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("the core beside a replica said:\n%s", log.String())
		}
	})
	eventually(t, func() error {
		select {
		case <-process.Done():
			t.Fatalf("the core beside a replica ended: %v", process.Err())
		default:
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+operations+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	soon(t, "the replica is known to be none", func() bool {
		return strings.Contains(get(t, "http://"+operations+"/readyz", http.StatusOK), `"degraded":{"replica":"`)
	})
	return operations
}
