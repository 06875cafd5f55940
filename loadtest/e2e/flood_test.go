package e2e_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// A flood of unknown keys is refused by the gateways alone, and nobody else notices: keys that exist pass, also where a
// gateway has forgotten them, as here after each second, and so does a key that was made a moment ago.
func TestKeys_UnknownFlood(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, 2, "GATEWAY_KEY_TTL=1s")
	gateways := s.Env().GatewayURLs
	ann := newPerson(t, gateways[0])
	on := func(gateway, key string) *client {
		c := apiClient(t, key)
		c.base = gateway
		return c
	}
	var honest []*client
	for n := range 30 {
		honest = append(honest, on(gateways[n%2], ann.newKey(t).Key))
	}

	var guesses, unavailable atomic.Int64
	var flood sync.WaitGroup
	over := make(chan struct{})
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	defer transport.CloseIdleConnections()
	for n := range 16 {
		flood.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				switch status := tryUnknownKey(t, transport, gateways[n%2]); status {
				case http.StatusForbidden:
				case http.StatusServiceUnavailable: // where the machine stands still
					unavailable.Add(1)
				default:
					t.Errorf("an unknown key: %d", status)
					return
				}
				guesses.Add(1)
			}
		})
	}
	passed, made, slowest := 0, 0, time.Duration(0)
	for began := time.Now(); time.Since(began) < 3*time.Second || made < 20; {
		c := honest[passed%len(honest)]
		if a, err := c.try(http.MethodGet, "/v2/tokens?chain-id=eip155:1", nil); err != nil || a.Status != http.StatusOK {
			t.Errorf("request %d: %+v, %v", passed, a, err)
		}
		passed++
		if passed%4 != 0 {
			continue
		}
		key := ann.newKey(t).Key // by the first gateway
		began := time.Now()
		if a, err := on(gateways[1], key).try(http.MethodGet, "/v2/tokens?chain-id=eip155:1", nil); err != nil || a.Status != http.StatusOK {
			t.Errorf("key %d, made a moment ago: %+v, %v", made, a, err)
		}
		slowest = max(slowest, time.Since(began))
		made++
	}
	close(over)
	flood.Wait()
	if unavailable.Load() > guesses.Load()/100 {
		t.Errorf("%d of %d unknown keys got 503", unavailable.Load(), guesses.Load())
	}
	t.Logf("%d requests of %d keys and %d of keys made a moment ago passed %d guesses, the slowest in %s", passed, len(honest), made, guesses.Load(), slowest)
}

// tryUnknownKey makes a request with a key that nobody was given.
func tryUnknownKey(t *testing.T, transport http.RoundTripper, gateway string) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gateway+"/v2/tokens", nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	request.Header.Set("X-Api-Key", apikey.New(network.Test).Reveal())
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
