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

// poolKind is what the connections of a pool are for. None takes the connections of the others.
type poolKind int

const (
	// shortPool is for requests with a key whose response does not stream, streamedPool for those that may.
	shortPool poolKind = iota
	streamedPool
	// keylessPool is for requests without a key, which anyone can send.
	keylessPool
	// ownPool is for the gateway's own requests.
	ownPool
	// probePool has the one connection of the probes.
	probePool
)

// poolNames are the kinds' names in metrics. Probes have none.
var poolNames = [...]string{shortPool: "short", streamedPool: "streamed", keylessPool: "open", ownPool: "own"}

// transport is the connections to one core, and the batches that wait for it.
type transport struct {
	client *Client
	core   *cores.Core
	pools  [probePool + 1]pool
	group  *group
	// dials are the connections that are being opened for clients' requests.
	dials   dials
	metrics []prometheus.Collector
}

// connect returns the transport of a core that joins the set.
func (c *Client) connect(core *cores.Core) cores.Transport {
	t := &transport{client: c, core: core, group: &group{client: c, core: core, ofAccount: map[string]int{}}}
	d := dialer{transport: t, tls: c.tlsOf(core)}
	for kind := range t.pools {
		t.pools[kind].dial, t.pools[kind].maxConns = d.dial, c.maxConns
	}
	t.pools[ownPool].dial, t.pools[ownPool].patient = d.dialUntil, true
	t.pools[probePool].dial, t.pools[probePool].maxConns = d.dialUntil, 1
	for kind, name := range poolNames {
		t.metrics = append(t.metrics, telemetry.Pool("gateway", core.Address+" "+name, t.pools[kind].state))
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

// GiveBack implements cores.Transport.
func (t *transport) GiveBack() {
	t.group.giveBack()
	t.dials.cancel()
}

// Close implements cores.Transport.
func (t *transport) Close() {
	for kind := range t.pools {
		t.pools[kind].close()
	}
	for _, collector := range t.metrics {
		t.client.registry.Unregister(collector)
	}
}
