package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestSimulateTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	created := s.Call(t, "GET", location, "", account...)
	record := created.Body.(map[string]any)
	record["status"], record["simulated"], record["tx"], record["ended"], record["final"] = "confirmed", true, nil, true, true
	simulated := s.Call(t, "POST", location+"/simulate", `{"status":"confirmed"}`, account...)
	webtest.Same(t, "confirmed", created, simulated)
	webtest.Same(t, "again", simulated, s.Call(t, "POST", location+"/simulate", `{"status":"confirmed"}`, account...))
	webtest.Same(t, "read", simulated, s.Call(t, "GET", location, "", account...))
	if diff := cmp.Diff([]any{nil, true, true}, eventMembers(t, s.Call(t, "GET", location+"/events", "", account...), "simulated")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// eventMembers are a member of the data of each event of an intent, nil where it is missing.
func eventMembers(t *testing.T, page webtest.Answer, member string) (values []any) {
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
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	const rule = "must be one of submitted, confirmed, filled, refunded, failed, expired"
	const status = "The intent's status does not allow this; see details.status and read it again."
	for name, c := range map[string]struct {
		body string
		want webtest.Answer
	}{
		"no body":           {"", webtest.Refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.")},
		"no status":         {`{}`, webtest.Invalid(t, "/status", "is required")},
		"an unknown status": {`{"status":"done"}`, webtest.Invalid(t, "/status", rule)},
		"the first status":  {`{"status":"created"}`, webtest.Invalid(t, "/status", rule)},
		"a cancellation":    {`{"status":"cancelled"}`, webtest.Invalid(t, "/status", rule)},
		"unknown member":    {`{"status":"failed","hash":1}`, webtest.Invalid(t, "/hash", "is not a known field")},
		"no solver":         {`{"status":"filled"}`, webtest.Conflict(t, "created", status)},
	} {
		webtest.Same(t, name, c.want, s.Call(t, "POST", location+"/simulate", c.body, account...))
	}
	webtest.Same(t, "query", webtest.Invalid(t, "now", "is not a known parameter"), s.Call(t, "POST", location+"/simulate?now=1", `{"status":"failed"}`, account...))
	webtest.Same(t, "another account", webtest.Refused(t, 404, "NOT_FOUND", "The account has no such transfer."),
		s.Call(t, "POST", location+"/simulate", `{"status":"failed"}`, webtest.Keyed(uuid.New(), "test")...))

	s.Call(t, "POST", location+"/transaction", reportOf(txHash("a")), account...)
	webtest.Same(t, "sent", webtest.Conflict(t, "submitted", "A transaction or a signature of this intent is known, so its chain decides its status; create another one to simulate."),
		s.Call(t, "POST", location+"/simulate", `{"status":"confirmed"}`, account...))

	_, location, _ = s.CreateTransfer(t, webtest.TransferBody, account...)
	s.Call(t, "POST", location+"/simulate", `{"status":"failed"}`, account...)
	webtest.Same(t, "a hash after a simulation", webtest.Conflict(t, "failed", "The intent was simulated, so it is never sent; create another one."),
		s.Call(t, "POST", location+"/transaction", reportOf(txHash("b")), account...))
	webtest.Same(t, "a preflight after a simulation", webtest.Conflict(t, "failed", "The intent was simulated, so it is never sent; create another one."),
		s.Call(t, "GET", location+"/preflight", "", account...))
	s.Call(t, "POST", location+"/simulate", `{"status":"confirmed"}`, account...)
	webtest.Same(t, "back", webtest.Conflict(t, "confirmed", status), s.Call(t, "POST", location+"/simulate", `{"status":"failed"}`, account...))
}

// A live key simulates nothing, neither of its own environment nor of the other.
func TestSimulateTransfer_Live(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, webtest.Keyed(owner, "test")...)
	if got := s.Call(t, "POST", location+"/simulate", `{"status":"failed"}`, webtest.Keyed(owner, "live")...); got.Status != 403 {
		t.Errorf("a live key and a test chain: %+v", got)
	}
	pgtest.Exec(t, s.Store, `UPDATE transfers SET environment = 'live'`)
	webtest.Same(t, "a live chain", webtest.Refused(t, 422, "SIMULATION_NOT_SUPPORTED", "Only intents of the test environment are simulated; create one with a test key."),
		s.Call(t, "POST", location+"/simulate", `{"status":"failed"}`, webtest.Keyed(owner, "live")...))
}
