package faults_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/loadtest/seed"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/faultproxy"
)

// eventDelay is how long after it happened an event is answered to a long poll, and attempted to be delivered, in 99 of 100 cases.
const eventDelay = 300 * time.Millisecond

// An endpoint that never answers delays neither the deliveries of another account nor its long polls, while both accounts have many events.
func TestEvents_DeadEndpoint(t *testing.T) {
	t.Parallel()
	db := startDatabase(t, embedded.PostgresConfig{})
	_, fleet := startServices(t, db, webhookSettings(t)...)
	dying := &database{url: db.url}
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) (err error) {
		dying.owner, err = seed.Account(ctx, conn)
		return err
	})
	alive, beside := newWorkload(t, db, fleet, keyedWrites), newWorkload(t, dying, fleet, keyedWrites)
	dead := faultproxy.Silent(t)
	made := system.NewClient(t, fleet[0].URL, beside.keys[0]).Do(http.MethodPost, "/v2/webhooks", map[string]string{"url": "http://" + dead.Address})
	system.Expect[any](t, made, http.StatusCreated)
	receiver, reader := startReceiver(t, fleet[0], alive.keys[0]), startFeedReader(t, fleet[0], alive.keys[1], 100)
	l := startLoad(t, fleet, baselineStream)
	beside.start(members / 2)
	beside.awaitMore(50) // the dead endpoint has its attempts
	alive.start(2)
	alive.awaitMore(times(200, 2000))
	alive.stop()
	beside.stop()
	j := newJudge(t, l.stop())

	mustDeliver(t, receiver, mustHaveReadAll(t, db, []*feedReader{reader}))
	if dead.Passed() == 0 {
		t.Error("the dead endpoint was not tried")
	}
	var attempted []time.Duration
	for id, deliveries := range receiver.All() {
		var event struct{ Timestamp time.Time }
		if err := json.Unmarshal(deliveries[0].Body, &event); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		attempted = append(attempted, deliveries[0].At.Sub(event.Timestamp))
	}
	share := 99
	if !*strict {
		share = 90 // a busy moment of the machine delays some in a hundred
	}
	for what, delays := range map[string][]time.Duration{"answered to a long poll": reader.delays, "attempted": attempted} {
		slices.Sort(delays)
		median, most := delays[len(delays)/2], delays[len(delays)*share/100]
		t.Logf("%d events were %s after %s, %d in 100 after %s", len(delays), what, median, share, most)
		if promise := within(eventDelay); most > promise {
			j.late("%d in 100 events were %s after %s, later than %s", share, what, most, promise)
		}
	}
}
