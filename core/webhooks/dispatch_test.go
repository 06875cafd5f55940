package webhooks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
)

// Types that another release has stored, of an event and of a filter, end nobody's round, and their event is sent as it is.
func TestDispatcher_UnknownTypes(t *testing.T) {
	t.Parallel()
	s, in, other := newService(t), newInbox(t), newInbox(t)
	owner, neighbour := s.Account(), s.Account()
	e, _ := s.Endpoint(owner, in.url)
	s.Endpoint(neighbour, other.url)
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET types = '{transfer.created,transfer.teleported,orbit.*}' WHERE id = $1", e.ID)
	s.intent(owner)
	s.intent(neighbour)
	for _, kind := range []string{"transfer.teleported", "orbit.entered", "moon.entered"} {
		pgtest.Exec(t, s.Store, `WITH advanced AS (UPDATE feed_state SET last_position = 1 + greatest(last_position, $3) RETURNING last_position)
			INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
			SELECT last_position, $1, 'test', $2, now(), '{"id": 7, "n": 1}' FROM advanced`, owner.AccountID, kind, s.Store.Now().UnixMicro())
	}
	s.start()
	s.intent(owner)
	asynctest.Eventually(t, "all have theirs", func() bool { return len(in.requests()) == 4 && len(other.requests()) == 1 })
	types := map[string]int{}
	for _, d := range s.Deliveries(e) {
		types[string(d.Type)]++
	}
	if diff := cmp.Diff(map[string]int{"transfer.created": 2, "transfer.teleported": 1, "orbit.entered": 1}, types); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A search that finds nothing, or an endpoint for which nothing can be dispatched, starts no other before its time.
func TestDispatcher_SearchInterval(t *testing.T) {
	t.Parallel()
	for _, locked := range []bool{false, true} {
		t.Run(fmt.Sprintf("locked %t", locked), func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			owner := s.Account()
			e, _ := s.Endpoint(owner, "http://127.0.0.1:9/")
			if locked {
				s.intent(owner)
				s.Lock("SELECT FROM webhooks WHERE id = $1 FOR UPDATE", e.ID)
			}
			c := s.start()
			const search, eachInterval = "GROUP BY webhooks.account_id", "'webhook dispatch'"
			asynctest.Eventually(t, "it searches", func() bool { return c.asked.Count(search) > 0 })
			began, searched := c.asked.Count(eachInterval), c.asked.Count(search)
			asynctest.Eventually(t, "three intervals pass", func() bool { return c.asked.Count(eachInterval) >= began+3 })
			if got := c.asked.Count(search) - searched; got > 8 {
				t.Errorf("%d searches in three intervals", got)
			}
		})
	}
}

// While ten accounts replay to twenty endpoints each, through two processes, a newer account's events are dispatched, and what owners
// do to endpoints that replay waits for a round at most.
func TestDispatcher_Replays(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const accounts, events = 10, 400
	endpoints := map[uuid.UUID][]*webhooks.Endpoint{}
	for range accounts {
		owner := s.Account()
		for range webhooks.MaxEndpoints {
			e, _ := s.Endpoint(owner, "http://127.0.0.1:9/")
			endpoints[owner.AccountID] = append(endpoints[owner.AccountID], e)
		}
		s.AddEvents(owner, events)
	}
	newer := s.Account()
	e, _ := s.Endpoint(newer, "http://127.0.0.1:9/")
	pgtest.Exec(t, s.Store, "UPDATE webhooks SET cursor = 0")
	s.start()
	s.start()
	asynctest.Eventually(t, "the replays run", func() bool { return len(s.Made()) == accounts })
	s.intent(newer)
	asynctest.Eventually(t, "the newer account's event is dispatched", func() bool { return len(s.Deliveries(e)) == 1 })
	s.Store = pgtest.Open(t, s.URL) // on a busy machine one round may take longer than an owner waits in production
	for _, of := range endpoints {
		s.Change(of[0], webhooks.Change{Enabled: new(false)})
		s.rotate(of[1], time.Hour)
		s.remove(of[2])
	}
	const untouched = `SELECT count(*) FROM deliveries JOIN webhooks ON webhooks.id = webhook_id WHERE enabled AND previous_secret IS NULL`
	if made := pgtest.LookUp[int](t, s.Store, untouched); made >= accounts*(webhooks.MaxEndpoints-3)*events {
		t.Errorf("all %d deliveries of the other replays are made by then", made)
	}
}
