package embedded_test

import (
	"net"
	"testing"

	"intents.internal/pkg/testkit/embedded"
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

func TestReservePort(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	used := listener.Addr().(*net.TCPAddr).Port
	given, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{used, given, 80, 65536} {
		if free, err := embedded.ReservePort("", port); free || err != nil {
			t.Errorf("port %d is free: %v, %v", port, free, err)
		}
	}
}
