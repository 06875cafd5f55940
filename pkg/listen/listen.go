// Package listen opens the TCP ports at which the services are reached.
package listen

import (
	"context"
	"net"
)

// Unsent is how many bytes of answers a connection holds at most, about, that have not been sent because the client has not
// read what came before. Linux would hold up to 4 MiB for each, so that a crowd of slow readers would have their answers
// made, and kept in memory, that they never take. It bounds no throughput: what is on its way does not count.
const Unsent = 128 << 10

// TCP listens on host:port. Linux and macOS hold the connections it accepts to Unsent.
func TCP(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: boundUnsent}
	config.SetMultipathTCP(false) // whose connections would not inherit the bound
	return config.Listen(ctx, "tcp", address)
}
