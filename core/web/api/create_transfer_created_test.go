package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/intent/transfer"
)

// The watcher of chains hears of every intent that a POST made or found, and of no request that was refused.
func TestCreateTransfer_Created(t *testing.T) {
	t.Parallel()
	var created []string
	s := start(t, func(c *settings) {
		c.intents.Created = func(intent *transfer.Intent) { created = append(created, intent.Destination.Account.Chain.String()) }
	})
	header := append(keyed(uuid.New(), "test"), "Idempotency-Key", "once")
	for body, status := range map[string]int{bridgeBody: 201, `{}`: 400} {
		for range 2 {
			if got := s.call(t, "POST", "/v2/transfers", body, header...); got.Status != status {
				t.Errorf("%s: %+v", body, got)
			}
		}
	}
	if len(created) != 2 || created[0] != "eip155:84532" || created[1] != created[0] {
		t.Errorf("told of %v", created)
	}
}
