// Package listen opens the TCP ports at which the services are reached.
package listen

import (
	"context"
	"net"
)

// Unsent is approximately the maximum number of response bytes that a connection buffers while the client does not read. Linux
// would buffer up to 4 MiB per connection, so many slow clients would keep complete responses in memory. It does not bound
// throughput: bytes in flight do not count.
const Unsent = 128 << 10

// TCP listens on host:port. On Linux and macOS the accepted connections have the bound Unsent.
func TCP(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: boundUnsent}
	config.SetMultipathTCP(false) // whose connections would not inherit the bound
	return config.Listen(ctx, "tcp", address)
}
