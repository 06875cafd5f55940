package edge

import (
	"log/slog"
	"net/netip"
)

// SetTrustedProxies changes whose X-Forwarded-For and X-Forwarded-Proto are believed, from the next request on.
func (e *Edge) SetTrustedProxies(networks []netip.Prefix) { e.trusted.Store(&networks) }

// SetAccessLog changes where the line of each request goes; nil for nowhere.
func (e *Edge) SetAccessLog(log *slog.Logger) { e.accessLog.Store(log) }

// SetMaxConns changes how many client connections are let in, in all and from one address (0 for no bound), within what the
// process may open. Those that are open stay.
func (e *Edge) SetMaxConns(most, perAddress int) { e.door.bound(most, perAddress) }
