package faults_test

import (
	"bytes"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"

	"intents.internal/loadtest/system"
)

// proxy is a Toxiproxy between a client and a server. It listens at the same address all the time, but while it refuses connections.
type proxy struct {
	*toxiproxy.Proxy
	t *testing.T
}

// startProxy forwards to a host:port until the test ends.
func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &proxy{toxiproxy.NewProxy(server, t.Name(), system.FreeAddress(t), target), t}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Toxics.ResetToxics(t.Context())
		p.Stop()
	})
	return p
}

func (p *proxy) url(scheme string) string { return scheme + "://" + p.Listen }

// refuse closes all connections, and refuses new ones until heal.
func (p *proxy) refuse() { p.Stop() }

// cut closes all connections, once.
func (p *proxy) cut() {
	p.Stop()
	p.heal()
}

// reset closes every connection at its next request.
func (p *proxy) reset() { p.add("reset_peer", "upstream", nil) }

// cutResponses closes every connection in place of the next response to a request, which arrives.
func (p *proxy) cutResponses() { p.add("reset_peer", "downstream", nil) }

// dropResponses loses every response to requests, which arrive.
func (p *proxy) dropResponses() { p.add("timeout", "downstream", nil) }

// delayResponses delays every response by so many milliseconds.
func (p *proxy) delayResponses(milliseconds int64) {
	p.add("latency", "downstream", toxics.LatencyToxic{Latency: milliseconds})
}

// blackHole forwards nothing until heal, and then all that was sent meanwhile, as TCP would send it again.
func (p *proxy) blackHole() {
	p.add("hold", "upstream", nil)
	p.add("hold", "downstream", nil)
}

// halfOpen makes all connections silent for good, with both ends left open, as after a power cut at the other end or at a firewall
// that forgets them. New connections work.
func (p *proxy) halfOpen() {
	for _, direction := range []string{"upstream", "downstream"} {
		p.add("half_open", direction, nil).Toxic.(*halfOpen).complete.Store(true)
	}
}

// heal ends all faults.
func (p *proxy) heal() {
	p.t.Helper()
	p.Toxics.ResetToxics(p.t.Context())
	if !p.Enabled {
		if err := p.Start(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *proxy) add(toxic, direction string, attributes any) *toxics.ToxicWrapper {
	p.t.Helper()
	text, err := json.Marshal(map[string]any{"type": toxic, "stream": direction, "attributes": attributes})
	if err != nil {
		p.t.Fatal(err)
	}
	added, err := p.Toxics.AddToxicJson(bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	return added
}

// Toxiproxy's timeout loses what is sent while it lasts, and no toxic of it tells old connections from new ones. These two do.
func init() {
	toxics.Register("hold", new(hold))
	toxics.Register("half_open", new(halfOpen))
}

type hold struct{}

func (*hold) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

// halfOpen affects the connections that exist until complete is set.
type halfOpen struct{ complete atomic.Bool }

// NewState returns whether a connection works, as each one's state.
func (h *halfOpen) NewState() any { return h.complete.Load() }

func (*halfOpen) Pipe(stub *toxics.ToxicStub) {
	if stub.State.(bool) {
		new(toxics.NoopToxic).Pipe(stub)
		return
	}
	new(toxics.TimeoutToxic).Pipe(stub)
}

// Cleanup closes the silent connections, which cannot go on without what they lost.
func (*halfOpen) Cleanup(stub *toxics.ToxicStub) {
	if !stub.State.(bool) {
		stub.Close()
	}
}
