package embedded_test

import (
	"testing"

	"intents.internal/pkg/embedded"
)

func TestFreePort(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 100 {
		port, err := embedded.FreePort("")
		if err != nil {
			t.Fatal(err)
		}
		if port < 20000 || port > 31999 || seen[port] {
			t.Fatalf("port %d is out of range or given twice", port)
		}
		seen[port] = true
	}
}
