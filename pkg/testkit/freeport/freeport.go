// Package freeport has ports of this machine that nobody listens at, for servers that a test starts later or that are down.
package freeport

import (
	"net"
	"strconv"
	"testing"

	"intents.internal/pkg/testkit/embedded"
)

// Port is a TCP port of 127.0.0.1 that nobody listens at; no other test is given it while this one runs.
func Port(tb testing.TB) int {
	tb.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

// Address is 127.0.0.1 with a Port.
func Address(tb testing.TB) string {
	tb.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port(tb)))
}
