package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// Made-up keys from ever new addresses use up all that a gateway looks up for strangers. Keys that there are pass all the same, also
// those that it does not know, as here after each second.
func TestFloodOfUnknownKeysLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, 1, "GATEWAY_TRUSTED_PROXIES=127.0.0.0/8", "GATEWAY_KEY_TTL=1s")
	gateway := s.Env().GatewayURL
	ann := newPerson(t, gateway)
	var honest []*client
	for range 30 {
		c := apiClient(t, ann.newKey(t).Key)
		c.base = gateway
		honest = append(honest, c)
	}

	var crowdedOut, others atomic.Int64
	var flood sync.WaitGroup
	over := make(chan struct{})
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	for range 8 {
		flood.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(2 * time.Millisecond):
				}
				switch status := tryUnknownKey(t, transport, gateway); status {
				case http.StatusServiceUnavailable:
					crowdedOut.Add(1)
				case http.StatusForbidden:
					others.Add(1)
				default:
					t.Errorf("an unknown key: %d", status)
					return
				}
			}
		})
	}
	eventually(t, func() error {
		if crowdedOut.Load() < 100 {
			return fmt.Errorf("%d unknown keys are crowded out", crowdedOut.Load())
		}
		return nil
	})
	passed := 0
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		c := honest[passed%len(honest)]
		if a, err := c.try(http.MethodGet, "/v2/tokens?chain-id=eip155:1", nil); err != nil || a.Status != http.StatusOK {
			t.Errorf("request %d: %+v, %v", passed, a, err)
		}
		passed++
		<-time.After(10 * time.Millisecond)
	}
	close(over)
	flood.Wait()
	t.Logf("%d requests of %d keys passed; of the flood, %d were looked up and %d crowded out", passed, len(honest), others.Load(), crowdedOut.Load())
}

// tryUnknownKey makes a request with a key that nobody was given, from an address that no other has.
func tryUnknownKey(t *testing.T, transport http.RoundTripper, gateway string) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gateway+"/v2/tokens", nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	request.Header.Set("X-Api-Key", apikey.New(network.Test).Reveal())
	request.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", rand.IntN(256), rand.IntN(256), rand.IntN(256)))
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
