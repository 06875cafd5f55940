package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
)

func TestSimulateTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := keyed(uuid.New(), "test")
	_, location, _ := s.create(t, transferBody, account...)
	created := s.call(t, "GET", location, "", account...)
	record := created.Body.(map[string]any)
	record["status"], record["simulated"], record["tx"], record["ended"], record["final"] = "confirmed", true, nil, true, true
	simulated := s.call(t, "POST", location+"/simulate", `{"status":"confirmed"}`, account...)
	same(t, "confirmed", created, simulated)
	same(t, "again", simulated, s.call(t, "POST", location+"/simulate", `{"status":"confirmed"}`, account...))
	same(t, "read", simulated, s.call(t, "GET", location, "", account...))
	if diff := cmp.Diff([]any{nil, true, true}, eventMembers(t, s.call(t, "GET", location+"/events", "", account...), "simulated")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// eventMembers are a member of the data of each event of an intent, nil where it is missing.
func eventMembers(t *testing.T, page answer, member string) (values []any) {
	t.Helper()
	body, _ := page.Body.(map[string]any)
	events, _ := body["events"].([]any)
	for _, event := range events {
		data, _ := event.(map[string]any)["data"].(map[string]any)
		values = append(values, data[member])
	}
	return values
}

func TestSimulateTransfer_Refused(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := keyed(uuid.New(), "test")
	_, location, _ := s.create(t, transferBody, account...)
	const rule = "must be one of submitted, confirmed, filled, refunded, failed, expired"
	const status = "The intent's status does not allow this; see details.status and read it again."
	for name, c := range map[string]struct {
		body string
		want answer
	}{
		"no body":           {"", refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.")},
		"no status":         {`{}`, invalid(t, "/status", "is required")},
		"an unknown status": {`{"status":"done"}`, invalid(t, "/status", rule)},
		"the first status":  {`{"status":"created"}`, invalid(t, "/status", rule)},
		"a cancellation":    {`{"status":"cancelled"}`, invalid(t, "/status", rule)},
		"unknown member":    {`{"status":"failed","hash":1}`, invalid(t, "/hash", "is not a known field")},
		"no solver":         {`{"status":"filled"}`, conflict(t, "created", status)},
	} {
		same(t, name, c.want, s.call(t, "POST", location+"/simulate", c.body, account...))
	}
	same(t, "query", invalid(t, "now", "is not a known parameter"), s.call(t, "POST", location+"/simulate?now=1", `{"status":"failed"}`, account...))
	same(t, "another account", refused(t, 404, "NOT_FOUND", "The account has no such transfer."),
		s.call(t, "POST", location+"/simulate", `{"status":"failed"}`, keyed(uuid.New(), "test")...))

	s.call(t, "POST", location+"/transaction", reportOf(txHash("a")), account...)
	same(t, "sent", conflict(t, "submitted", "A transaction or a signature of this intent is known, so its chain decides its status; create another one to simulate."),
		s.call(t, "POST", location+"/simulate", `{"status":"confirmed"}`, account...))

	_, location, _ = s.create(t, transferBody, account...)
	s.call(t, "POST", location+"/simulate", `{"status":"failed"}`, account...)
	same(t, "a hash after a simulation", conflict(t, "failed", "The intent was simulated, so it is never sent; create another one."),
		s.call(t, "POST", location+"/transaction", reportOf(txHash("b")), account...))
	same(t, "a preflight after a simulation", conflict(t, "failed", "The intent was simulated, so it is never sent; create another one."),
		s.call(t, "GET", location+"/preflight", "", account...))
	s.call(t, "POST", location+"/simulate", `{"status":"confirmed"}`, account...)
	same(t, "back", conflict(t, "confirmed", status), s.call(t, "POST", location+"/simulate", `{"status":"failed"}`, account...))
}

// A live key simulates nothing, neither of its own environment nor of the other.
func TestSimulateTransfer_Live(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	_, location, _ := s.create(t, transferBody, keyed(owner, "test")...)
	if got := s.call(t, "POST", location+"/simulate", `{"status":"failed"}`, keyed(owner, "live")...); got.Status != 403 {
		t.Errorf("a live key and a test chain: %+v", got)
	}
	pgtest.Exec(t, s.store, `UPDATE transfers SET environment = 'live'`)
	same(t, "a live chain", refused(t, 422, "SIMULATION_NOT_SUPPORTED", "Only intents of the test environment are simulated; create one with a test key."),
		s.call(t, "POST", location+"/simulate", `{"status":"failed"}`, keyed(owner, "live")...))
}
