package webhooks_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/access"
	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/testkit/asynctest"
)

// An endpoint receives each step of a simulation, as if a chain had shown it.
func TestDispatcher_DeliversSimulated(t *testing.T) {
	t.Parallel()
	s, in := newService(t), newInbox(t)
	owner := s.Account()
	intent := s.intent(owner)
	s.Endpoint(owner, in.url)
	s.start()
	_, err := s.Store.Intents.Simulate(t.Context(), access.OfKey(owner.AccountID), owner.AccountID, intent.ID, transfer.Confirmed)
	pgtest.Must(t, err)
	asynctest.Eventually(t, "the events arrive", func() bool { return len(in.requests()) == 2 })
	received := map[string]bool{}
	for _, request := range in.requests() {
		var event struct {
			Type string
			Data struct{ Simulated bool }
		}
		pgtest.Must(t, json.Unmarshal([]byte(request.body), &event))
		received[event.Type] = event.Data.Simulated
	}
	if diff := cmp.Diff(map[string]bool{"transfer.submitted": true, "transfer.confirmed": true}, received); diff != "" {
		t.Errorf("whether each was simulated (-want +got):\n%s", diff)
	}
}
