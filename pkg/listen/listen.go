// Package listen opens the services' TCP listeners.
package listen

import (
	"context"
	"net"
)

// Unsent bounds, approximately, the bytes in a connection's send buffer that are not yet sent because the client does not read
// (TCP_NOTSENT_LOWAT). Linux would buffer up to 4 MiB per connection, so many slow readers would have their responses produced
// and kept in memory without reading them. It does not limit throughput: bytes in flight do not count.
const Unsent = 128 << 10

// TCP listens on host:port. Linux and macOS apply Unsent to the connections that it accepts.
func TCP(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: boundUnsent}
	config.SetMultipathTCP(false) // MPTCP connections would not inherit Unsent
	return config.Listen(ctx, "tcp", address)
}
