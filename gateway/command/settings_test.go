package command_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// caller makes requests to a gateway, each on a connection of its own unless it is kept.
type caller struct {
	t         *testing.T
	core      *coretest.Core
	base, ops string
	key       string
}

// get returns the status, 0 for a connection that broke off.
func (c caller) get(path, key string, keep bool, header http.Header) (status int) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.base+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	request.Close, request.Header = !keep, header
	if key != "" {
		request.Header.Set("X-Api-Key", key)
	}
	connection := &http.Transport{}
	c.t.Cleanup(connection.CloseIdleConnections)
	response, err := connection.RoundTrip(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func (c caller) ready() (status int) {
	status, _ = get(c.t, c.ops+"/readyz", "")
	return status
}

// second is the status on a connection beside one that is kept. A connection beyond the limit is answered before its request.
func (c caller) second() int {
	c.get("/health", "", true, http.Header{})
	conn, err := new(net.Dialer).DialContext(c.t.Context(), "tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// secondPoll is the worse status of two requests for events that wait together.
func (c caller) secondPoll() int {
	first := make(chan int)
	go func() { first <- c.get("/v2/events?wait=1", c.key, false, http.Header{}) }()
	second := c.get("/v2/events?wait=1", c.key, false, http.Header{})
	return max(<-first, second)
}

// Each setting reaches the part that it is for.
func TestSettings(t *testing.T) {
	t.Parallel()
	for setting, c := range map[string]struct {
		value string
		holds func(caller) bool
	}{
		"GATEWAY_TRUSTED_PROXIES": {"127.0.0.0/8", func(c caller) bool {
			status := c.get("/v2/tokens", c.key, false, http.Header{"X-Forwarded-For": {"198.51.100.7"}})
			all := c.core.Requests()
			return status == http.StatusOK && all[len(all)-1].Header.Get("X-Forwarded-For") == "198.51.100.7"
		}},
		"GATEWAY_MAX_CONNS":        {"1", func(c caller) bool { return c.second() == http.StatusServiceUnavailable }},
		"GATEWAY_MAX_CONNS_PER_IP": {"1", func(c caller) bool { return c.second() == http.StatusServiceUnavailable }},
		"GATEWAY_MAX_POLLS":        {"1", func(c caller) bool { return c.secondPoll() == http.StatusTooManyRequests }},
		"GATEWAY_LIMIT_FALLBACK": {"closed", func(c caller) bool {
			for range 10 { // the gateway notices by requests that Redis does not answer
				if c.get("/v2/tokens", c.key, false, http.Header{}) != http.StatusServiceUnavailable {
					return false
				}
			}
			return c.ready() == http.StatusServiceUnavailable
		}},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			for _, set := range []bool{false, true} {
				core := coretest.Start(t, nil)
				core.Public = core.Events.ServeHTTP
				variables := environment(t, core)
				if setting == "GATEWAY_LIMIT_FALLBACK" {
					variables["GATEWAY_REDIS_URL"] = "redis://127.0.0.1:1/0" // nothing listens there
				}
				if set {
					variables[setting] = c.value
				}
				g := newGateway(t, variables)
				ctx, stop := context.WithCancel(t.Context())
				ran := make(chan error, 1)
				go func() { ran <- g.Run(ctx) }()
				visitor := caller{t, core, "http://" + g.Address(), "http://" + g.OperationsAddress(), core.AddKey(network.Test).Reveal()}
				asynctest.Eventually(t, "it is ready", func() bool { return visitor.ready() == http.StatusOK })
				if got := c.holds(visitor); got != set {
					t.Errorf("set: %t, counts: %t", set, got)
				}
				stop()
				if err := errors.Join(<-ran, g.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
