package gateways_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/wire"
)

// Requests of 64 accounts in one batch stay apart: each account gets its own intent, its own refusals, and its own line in the log.
func TestGroup_Accounts(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	accounts := make([]uuid.UUID, wire.MaxBatchRequests)
	var requests []*http.Request
	for n := range accounts {
		accounts[n] = uuid.New()
		text := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", fmt.Sprintf(`,"reference":"of %d"`, n))
		if n%8 == 7 {
			text = `{"reference":"of ` + fmt.Sprint(n) + `"}`
		}
		requests = append(requests, s.CreateRequest(t, accounts[n], fmt.Sprintf("request-%d", n), text))
	}
	for n, response := range s.SendGroup(t, requests...) {
		text := webtest.ReadAll(t, response)
		if n%8 == 7 {
			if response.StatusCode != http.StatusBadRequest || !strings.Contains(text, "INVALID_REQUEST") {
				t.Errorf("%d: %d %s", n, response.StatusCode, text)
			}
			continue
		}
		var record struct{ ID, Reference string }
		if err := json.Unmarshal([]byte(text), &record); err != nil || response.StatusCode != http.StatusCreated {
			t.Fatalf("%d: %d %v %s", n, response.StatusCode, err, text)
		}
		if want := fmt.Sprintf("of %d", n); record.Reference != want || response.Header.Get("Location") != "/v2/transfers/"+record.ID {
			t.Errorf("%d got %+v at %s", n, record, response.Header.Get("Location"))
		}
		if owner := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT account_id FROM transfers WHERE id = $1`, record.ID); owner != accounts[n] {
			t.Errorf("the intent of %d belongs to %s, want %s", n, owner, accounts[n])
		}
	}
	for n := range accounts {
		if lines := strings.Count(s.Log.String(), fmt.Sprintf(`"request_id":"request-%d"`, n)); lines != 1 {
			t.Errorf("request %d has %d lines in the log, want 1", n, lines)
		}
	}
}

// Members leave out the field that gateways add to every response without it, whatever the outcome; the same requests alone have it.
func TestGroup_CacheControl(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	account := uuid.New()
	statuses := map[string]int{"created": 201, "created once": 201, "repeated": 201, "reused": 422, "malformed": 400}
	members := func() []*http.Request {
		all := []*http.Request{
			s.CreateRequest(t, account, "created", webtest.TransferBody), s.CreateRequest(t, account, "created once", webtest.TransferBody),
			s.CreateRequest(t, account, "repeated", webtest.TransferBody), s.CreateRequest(t, account, "reused", webtest.SwapBody),
			s.CreateRequest(t, account, "malformed", "{}"),
		}
		for _, r := range all[1:4] {
			r.Header.Set("Idempotency-Key", "once")
		}
		return all
	}
	for _, request := range members() {
		id := request.Header.Get(wire.HeaderRequestID)
		request.Header.Set(wire.HeaderGatewaySecret, webtest.GatewaySecret)
		alone, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		text, control := webtest.ReadAll(t, alone), alone.Header.Values("Cache-Control")
		if diff := cmp.Diff([]string{"no-store"}, control); diff != "" || alone.StatusCode != statuses[id] {
			t.Errorf("alone, %s: %d %s, Cache-Control (-want +got):\n%s", id, alone.StatusCode, text, diff)
		}
	}
	requests := members()
	stream := s.PostGroup(t, webtest.GroupOf(t, requests...))
	defer stream.Body.Close()
	for range requests {
		number, response := webtest.ReadFrame(t, stream.Body, len(requests))
		id := requests[number].Header.Get(wire.HeaderRequestID)
		if text := webtest.ReadAll(t, response); response.StatusCode != statuses[id] || response.Header.Values("Cache-Control") != nil {
			t.Errorf("in a batch, %s: %d %s, %v", id, response.StatusCode, text, response.Header)
		}
	}
}

// A refusal is sent while the rows of the same batch still wait for their commit.
func TestGroup_RefusalsAtOnce(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	block := pgtest.BlockCommits(t, s.Store, "transfers")
	account := uuid.New()
	stream := s.PostGroup(t, webtest.GroupOf(t, s.CreateRequest(t, account, "good", webtest.TransferBody), s.CreateRequest(t, account, "bad", "{}")))
	defer stream.Body.Close()
	number, response := webtest.ReadFrame(t, stream.Body, 2)
	first := []int{number, response.StatusCode}
	_ = response.Body.Close()
	block.Await(t, 1)
	block.Release(t)
	number, response = webtest.ReadFrame(t, stream.Body, 2)
	_ = response.Body.Close()
	if diff := cmp.Diff([]int{1, 400, 0, 201}, append(first, number, response.StatusCode)); diff != "" {
		t.Errorf("numbers and statuses (-want +got):\n%s", diff)
	}
}

// The rows of a batch are written in one commit, whichever request they are of.
func TestGroup_OneCommit(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	requests := make([]*http.Request, wire.MaxBatchRequests)
	for n := range requests {
		requests[n] = s.CreateRequest(t, uuid.New(), fmt.Sprint(n), webtest.TransferBody)
	}
	for n, response := range s.SendGroup(t, requests...) {
		if response.StatusCode != http.StatusCreated {
			t.Errorf("%d: %d", n, response.StatusCode)
		}
	}
	rows, commits := pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM transfers"), pgtest.LookUp[int](t, s.Store, "SELECT count(DISTINCT xid) FROM events")
	if rows != len(requests) || commits != 1 {
		t.Errorf("%d rows in %d commits, want %d in one", rows, commits, len(requests))
	}
}

// If the gateway closes the connection, the rows that still wait for their turn are not written.
func TestGroup_ConnectionClosed(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewPedanticRegistry()
	patient := pgtest.Patient()
	patient.Metrics = metrics
	s := webtest.StartOn(t, pgtest.OpenWith(t, pgtest.Database(t), patient))
	waiting := func(n float64) func() bool {
		return func() bool { return metricstest.Values(t, metrics)["intents_core_writes_waiting"] == n }
	}
	block := pgtest.BlockCommits(t, s.Store, "transfers")
	account, requests := uuid.New(), 0
	send := func(commits int) *http.Response {
		stream := s.PostGroup(t, webtest.GroupOf(t, s.CreateRequest(t, account, "refused", "{}"), s.CreateRequest(t, account, fmt.Sprint(requests), webtest.TransferBody)))
		requests++
		_, response := webtest.ReadFrame(t, stream.Body, 2) // the refusal: the other one is on its way
		_ = response.Body.Close()
		block.Await(t, commits)
		return stream
	}
	for n := range 2 { // as many commits as may be in progress
		defer send(n + 1).Body.Close()
	}
	queued := send(2)
	asynctest.Eventually(t, "the third row waits for its turn", waiting(1))
	_ = queued.Body.Close()
	asynctest.Eventually(t, "its row is withdrawn", waiting(0))
	block.Release(t)
	asynctest.Eventually(t, "the others are written", func() bool { return pgtest.LookUp[int](t, s.Store, "SELECT count(*) FROM transfers") == 2 })
}

// Of a batch that is not one, nothing is carried out. Only a gateway may send one, and only what clients may ask for.
func TestGroup_Malformed(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	whole := webtest.MessageOf(t, s.CreateRequest(t, uuid.New(), "one", webtest.TransferBody))
	good := wire.AppendFrame(nil, 0, whole)
	with := func(message []byte) []byte { return wire.AppendFrame(slices.Clone(good), 1, message) }
	asking := func(method, path string) []byte {
		return with(wire.AppendBody(wire.AppendField(wire.AppendField(nil, wire.FieldMethod, method), wire.FieldPath, path), ""))
	}
	for name, batch := range map[string][]byte{
		"empty":                {},
		"cut off":              good[:len(good)-1],
		"longer":               append(slices.Clone(good), 0),
		"a number twice":       append(slices.Clone(good), good...),
		"too many":             bytes.Repeat(good, wire.MaxBatchRequests+1),
		"too long":             with(append(slices.Clone(whole), make([]byte, wire.MaxBatchBytes)...)),
		"no fields":            with(nil),
		"fields cut off":       with(whole[:20]),
		"no method, no path":   with(wire.AppendBody(nil, webtest.TransferBody)),
		"a path that is none":  asking("POST", "%zz"),
		"another method":       asking("GET", "/v2/transfers"),
		"an internal path":     asking("POST", "/internal/usage"),
		"a session route":      asking("POST", "/auth/sign-in/email"),
		"a batch":              asking("POST", wire.PathBatch),
		"another path by dots": asking("POST", "/v2/../internal/usage"),
	} {
		response := s.PostGroup(t, batch)
		if mark := response.Header.Get(wire.HeaderCore); mark != wire.CoreRefused {
			t.Errorf("%s: core says %q of it", name, mark)
		}
		if got := webtest.ReadAll(t, response); response.StatusCode != http.StatusBadRequest || !strings.Contains(got, "INVALID_REQUEST") {
			t.Errorf("%s: %d %s", name, response.StatusCode, got)
		}
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers`); n != 0 {
		t.Errorf("%d intents are stored, want none", n)
	}
	webtest.Same(t, "without the secret", webtest.Refused(t, 401, "NOT_A_GATEWAY", "Only gateways may call this address; call the gateway's.", wire.HeaderCore, wire.CoreRefused),
		s.Call(t, "POST", wire.PathBatch, string(good), "X-Gateway-Secret", ""))
}

// A gateway of another release is told that there are no batches of its version, by the status that turns them off.
func TestGroup_OtherVersion(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	batch := string(webtest.GroupOf(t, s.CreateRequest(t, uuid.New(), "one", webtest.TransferBody)))
	for _, version := range []string{"", "2", "4"} {
		webtest.Same(t, version, webtest.Refused(t, 404, "NOT_FOUND", "This core serves no batches of this version; none of its requests was carried out.", wire.HeaderCore, wire.CoreRefused),
			s.Call(t, "POST", wire.PathBatch, batch, wire.HeaderBatch, version))
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers`); n != 0 {
		t.Errorf("%d intents are stored, want none", n)
	}
}
