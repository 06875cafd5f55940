package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
	"intents.internal/core/web/webtest"
)

// names are the reference and labels of a record, or of an event's data.
type names struct {
	Reference *string
	Labels    map[string]string
}

// update patches an intent and returns its names then.
func (s *service) update(t *testing.T, location, change string, header ...string) (got names) {
	t.Helper()
	response := s.Send(t, "PATCH", location, change, header...)
	raw := webtest.ReadAll(t, response)
	if err := json.Unmarshal([]byte(raw), &got); err != nil || response.StatusCode != 200 {
		t.Errorf("%s: %d %s", change, response.StatusCode, raw)
	}
	return got
}

func TestUpdateTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	once := append(webtest.Keyed(owner, "test"), "Idempotency-Key", "order-1")
	request := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"reference":"inv-42","labels":{"a":"1","b":"2"}`)
	_, location, first := s.CreateTransfer(t, request, once...)

	steps := []struct {
		change string
		want   names
	}{
		{`{"labels":{"b":null,"c":"3"}}`, names{new("inv-42"), map[string]string{"a": "1", "c": "3"}}},
		{`{"labels":{"a":"1","x":null},"reference":"inv-42"}`, names{new("inv-42"), map[string]string{"a": "1", "c": "3"}}}, // nothing
		{`{"reference":null}`, names{nil, map[string]string{"a": "1", "c": "3"}}},
		{`{"labels":null,"reference":"inv-43"}`, names{new("inv-43"), map[string]string{}}},
	}
	for _, step := range steps {
		if diff := cmp.Diff(step.want, s.update(t, location, step.change, account...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.change, diff)
		}
	}
	pgtest.AssignPositions(t, s.Store)
	var page struct {
		Events []struct {
			Type     string
			Sequence int
			Data     names
		}
	}
	response := s.Send(t, "GET", "/v2/events", "", account...)
	if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &page); err != nil {
		t.Fatal(err)
	}
	want := []names{{new("inv-42"), map[string]string{"a": "1", "b": "2"}}, steps[0].want, steps[2].want, steps[3].want}
	for n, e := range page.Events {
		kind := "transfer.updated"
		if n == 0 {
			kind = "transfer.created"
		}
		if diff := cmp.Diff(want[n], e.Data); diff != "" || e.Type != kind || e.Sequence != n+1 {
			t.Errorf("event %d: %s %d (-want +got):\n%s", n+1, e.Type, e.Sequence, diff)
		}
	}
	if len(page.Events) != len(want) {
		t.Errorf("%d events, want %d", len(page.Events), len(want))
	}
	// A repeat is compared with what was sent first, and gets the first answer.
	s.replays(t, request, location, first, once...)
	reused := webtest.Refused(t, 422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")
	webtest.Same(t, "as it is now", reused, s.Call(t, "POST", "/v2/transfers",
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"reference":"inv-43"`), once...))
}

// Whatever an intent's status is, it can be renamed, and what it tells of its life stays.
func TestUpdateTransfer_AnyStatus(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	s.Call(t, "POST", location+"/cancel", "", account...)
	cancelled := pgtest.LookUp[string](t, s.Store, `SELECT cancelled_at::text FROM transfers`)
	s.update(t, location, `{"labels":{"a":"1"}}`, account...)
	id := uuid.MustParse(strings.TrimPrefix(location, "/v2/transfers/"))
	if _, err := s.Store.Intents.Transition(t.Context(), owner, id, transfer.Command{Trigger: transfer.Submit, Hash: "0x1"}); err != nil {
		t.Fatal(err)
	}
	if got := pgtest.LookUp[string](t, s.Store, `SELECT cancelled_at::text FROM transfers`); got != cancelled {
		t.Errorf("cancelled at %s, and after an update at %s", cancelled, got)
	}
	pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'failed', failure = 'TX_REVERTED'`)
	if got := s.update(t, location, `{"labels":{"a":"2"}}`, account...); got.Labels["a"] != "2" {
		t.Errorf("of one that failed: %v", got)
	}
}

// The items of a batch are compared with what was sent first too.
func TestUpdateTransfer_Batch(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	named := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "7", webtest.BobOnSepolia, "", "", `,"labels":{"b":"2","a":"1"}`)
	request, header := batchOf(webtest.TransferBody, named), withKey("payroll-1", account)
	made, _ := s.createBatch(t, request, header...)
	if diff := cmp.Diff(map[string]any{"a": "1", "b": "2"}, made.Transfers[1]["labels"]); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	for _, id := range made.ids() {
		s.update(t, "/v2/transfers/"+id, `{"labels":{"a":"3"}}`, account...)
	}
	again, replayed := s.createBatch(t, request, header...)
	if diff := cmp.Diff(made, again); diff != "" || !replayed {
		t.Errorf("replayed %v (-first +second):\n%s", replayed, diff)
	}
}

func TestUpdateTransfer_Refused(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"labels":{"a":"1"}`), account...)
	many := map[string]string{}
	for n := range 20 {
		many[fmt.Sprint("k", n)] = "1"
	}
	twenty, _ := json.Marshal(map[string]any{"labels": many})
	for name, c := range map[string]struct {
		change string
		header []string
		want   webtest.Answer
	}{
		"a key":               {`{"labels":{"a b":"1"}}`, account, webtest.Invalid(t, "/labels/a b", "is not the key of a label: a key has 1 to 40 ASCII letters, digits, dots, hyphens and underscores")},
		"no body":             {"", account, webtest.Refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.")},
		"too long":            {strings.Repeat(" ", 16<<10+1), account, webtest.TooLarge(t)},
		"too many":            {string(twenty), account, webtest.Invalid(t, "/labels", "must leave the intent no more than 20 labels; remove some by null")},
		"another account":     {`{"labels":{}}`, webtest.Keyed(uuid.New(), "test"), s.Call(t, "GET", "/v2/transfers/"+uuid.NewString(), "", account...)},
		"another environment": {`{"labels":{}}`, webtest.Keyed(owner, "live"), s.Call(t, "POST", location+"/cancel", "", webtest.Keyed(owner, "live")...)},
	} {
		webtest.Same(t, name, c.want, s.Call(t, "PATCH", location, c.change, c.header...))
	}
	delete(many, "k0")
	rest, _ := json.Marshal(map[string]any{"labels": many})
	if got := s.update(t, location, string(rest), account...); len(got.Labels) != 20 || !maps.Equal(got.Labels, storedLabels(t, s)) {
		t.Errorf("20 labels: %v", got)
	}
}

// storedLabels are those of the only intent.
func storedLabels(t *testing.T, s *service) (labels map[string]string) {
	t.Helper()
	if err := json.Unmarshal([]byte(pgtest.LookUp[string](t, s.Store, `SELECT labels FROM transfers`)), &labels); err != nil {
		t.Fatal(err)
	}
	return labels
}
