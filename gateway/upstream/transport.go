package upstream

import (
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/telemetry"
)

const (
	// idleTimeout closes idle connections to core long before core does (75 s), because a request that is sent while core closes
	// would be lost.
	idleTimeout = 20 * time.Second
	// connWait is how long a client's request waits for a connection when all are in use.
	connWait = 100 * time.Millisecond
)

// transport is the connections to one core: a pool for short exchanges, one for those that may stream, one for requests without a key, which
// anyone can send, one for the gateway's own requests, and the one connection of the probes. None of them takes the connections of the others.
type transport struct {
	client                               *Client
	core                                 *cores.Core
	short, streamed, keyless, own, probe pool
	group                                *group
	// dials are the connections that are being opened for clients' requests.
	dials   dials
	metrics []prometheus.Collector
}

// connect returns the transport of a core that joins the set.
func (c *Client) connect(core *cores.Core) cores.Transport {
	t := &transport{client: c, core: core, group: &group{client: c, core: core, ofAccount: map[string]int{}}}
	d := dialer{transport: t, tls: c.tlsOf(core)}
	t.short = pool{dial: d.dial, maxConns: c.maxConns}
	t.streamed = pool{dial: d.dial, maxConns: c.maxConns}
	t.keyless = pool{dial: d.dial, maxConns: c.maxConns}
	t.own = pool{dial: d.dialUntil, maxConns: c.maxConns, patient: true}
	t.probe = pool{dial: d.dialUntil, maxConns: 1}
	for name, p := range map[string]*pool{"short": &t.short, "streamed": &t.streamed, "open": &t.keyless, "own": &t.own} {
		t.metrics = append(t.metrics, telemetry.Pool("gateway", core.Address+" "+name, p.state))
	}
	c.registry.MustRegister(t.metrics...)
	return t
}

// transportTo returns the connections to the core.
func transportTo(core *cores.Core) *transport { return core.Transport.(*transport) }

// tlsOf is the configuration for the core, nil for plain HTTP.
func (c *Client) tlsOf(core *cores.Core) *tls.Config {
	if core.URL.Scheme != "https" {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.tls != nil {
		config = c.tls.Clone()
	}
	config.ServerName = core.URL.Hostname()
	return config
}

// poolFor returns the pool for a request.
func (t *transport) poolFor(r *Request) *pool {
	switch {
	case r.own != nil && r.own.isProbe:
		return &t.probe
	case r.own != nil:
		return &t.own
	case !r.hasKey():
		return &t.keyless
	case r.Stream:
		return &t.streamed
	default:
		return &t.short
	}
}

// GiveBack implements cores.Transport.
func (t *transport) GiveBack() {
	t.group.giveBack()
	t.dials.cancel()
}

// Close implements cores.Transport.
func (t *transport) Close() {
	for _, p := range []*pool{&t.short, &t.streamed, &t.keyless, &t.own, &t.probe} {
		p.close()
	}
	for _, collector := range t.metrics {
		t.client.registry.Unregister(collector)
	}
}
