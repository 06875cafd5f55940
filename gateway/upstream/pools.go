package upstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/telemetry"
)

const (
	// idleTimeout closes idle connections to core long before core does (75 s), because a request that is sent while core closes
	// would be lost.
	idleTimeout = 20 * time.Second
	// connWait is how long a client's request waits for a connection when all are in use.
	connWait = 100 * time.Millisecond
)

// pools are those of one core: one for short exchanges, one for those that may stream, one for requests without a key, which anyone
// can send, one for the gateway's own requests, and the one connection of the probes. None of them takes the connections of the
// others.
type pools struct {
	short, streamed, keyless, own, probe pool

	group *group
}

func newPools(s *Set, core *Core) *pools {
	d := dialer{cores: s, core: core, tls: s.TLS(core)}
	return &pools{
		short:    pool{dial: d.dial, maxConns: s.maxConns},
		streamed: pool{dial: d.dial, maxConns: s.maxConns},
		keyless:  pool{dial: d.dial, maxConns: s.maxConns},
		own:      pool{dial: d.dialUntil, maxConns: s.maxConns, patient: true},
		probe:    pool{dial: d.dialUntil, maxConns: 1},
		group:    &group{client: s.client, core: core, ofAccount: map[string]int{}},
	}
}

// of returns the pool for a request.
func (l *pools) of(r *Request) *pool {
	switch {
	case r.own != nil && r.own.isProbe:
		return &l.probe
	case r.own != nil:
		return &l.own
	case !r.hasKey():
		return &l.keyless
	case r.Stream:
		return &l.streamed
	default:
		return &l.short
	}
}

// close closes the idle connections now and the others when they are returned.
func (l *pools) close() {
	l.short.close()
	l.streamed.close()
	l.keyless.close()
	l.own.close()
	l.probe.close()
}

func (l *pools) metrics(core *Core) []prometheus.Collector {
	return []prometheus.Collector{
		telemetry.Pool("gateway", core.Address+" short", l.short.state),
		telemetry.Pool("gateway", core.Address+" streamed", l.streamed.state),
		telemetry.Pool("gateway", core.Address+" open", l.keyless.state),
		telemetry.Pool("gateway", core.Address+" own", l.own.state),
	}
}
