package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/wire"
)

// inBatch makes the tests send each POST /v2/transfers in a batch.
var inBatch bool

func init() { flag.BoolVar(&inBatch, "batch", false, "send each POST /v2/transfers in a batch") }

// sendGroup sends requests as one, as a gateway does, and returns their responses in the order of the requests.
func (s *service) sendGroup(t *testing.T, requests ...*http.Request) []*http.Response {
	t.Helper()
	stream := s.postGroup(t, groupOf(t, requests...))
	defer stream.Body.Close()
	responses := make([]*http.Response, len(requests))
	for range requests {
		number, response := readFrame(t, stream.Body, len(requests)) //nolint:bodyclose // it is in memory
		if responses[number] != nil {
			t.Fatalf("request %d has two responses", number)
		}
		response.Request = requests[number]
		if response.Header.Values("Cache-Control") == nil {
			response.Header.Set("Cache-Control", "no-store") // as gateways do, see forbidCaching
		}
		responses[number] = response
	}
	if rest, err := io.ReadAll(stream.Body); err != nil || len(rest) > 0 {
		t.Fatalf("after the last response: %q, %v", rest, err)
	}
	return responses
}

// groupOf is the body of a batch.
func groupOf(t *testing.T, requests ...*http.Request) (batch []byte) {
	t.Helper()
	for number, request := range requests {
		batch = wire.AppendFrame(batch, number, messageOf(t, request))
	}
	return batch
}

// messageOf is the message of a request in a batch.
func messageOf(t *testing.T, request *http.Request) []byte {
	t.Helper()
	message := wire.AppendField(wire.AppendField(nil, wire.FieldMethod, request.Method), wire.FieldPath, request.URL.RequestURI())
	for name, values := range request.Header {
		for _, value := range values {
			if name != http.CanonicalHeaderKey(wire.HeaderGatewaySecret) {
				message = wire.AppendField(message, name, value)
			}
		}
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendBody(message, body)
}

func (s *service) postGroup(t *testing.T, body []byte) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+wire.PathBatch, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(wire.HeaderGatewaySecret, gatewaySecret)
	request.Header.Set(wire.HeaderBatch, wire.BatchVersion)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func readFrame(t *testing.T, from io.Reader, count int) (number int, response *http.Response) {
	t.Helper()
	head := make([]byte, wire.FrameHeadBytes)
	if _, err := io.ReadFull(from, head); err != nil {
		t.Fatalf("read a frame: %v", err)
	}
	number, length, err := wire.ParseFrameHead(head, count, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(from, message); err != nil {
		t.Fatalf("read a frame: %v", err)
	}
	response = &http.Response{Header: http.Header{}}
	for {
		name, value, rest, err := wire.NextField(message)
		if err != nil {
			t.Fatalf("%v: %q", err, message)
		}
		message = rest
		switch string(name) {
		case "":
			response.Body = io.NopCloser(bytes.NewReader(message))
			return number, response
		case wire.FieldStatus:
			if response.StatusCode, err = strconv.Atoi(string(value)); err != nil {
				t.Fatal(err)
			}
		default:
			response.Header.Add(string(name), string(value))
		}
	}
}

// createRequest is a request to create an intent as a gateway would send it for this account.
func (s *service) createRequest(t *testing.T, account uuid.UUID, id, body string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v2/transfers", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for header := range slices.Chunk(append(keyed(account, "test"), "Content-Type", "application/json", wire.HeaderRequestID, id), 2) {
		request.Header.Set(header[0], header[1])
	}
	return request
}

// Requests of 64 accounts in one batch stay apart: each account gets its own intent, its own refusals, and its own line in the log.
func TestGroup_Accounts(t *testing.T) {
	t.Parallel()
	s := start(t)
	accounts := make([]uuid.UUID, wire.MaxBatchRequests)
	var requests []*http.Request
	for n := range accounts {
		accounts[n] = uuid.New()
		text := body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "", fmt.Sprintf(`,"reference":"of %d"`, n))
		if n%8 == 7 {
			text = `{"reference":"of ` + fmt.Sprint(n) + `"}`
		}
		requests = append(requests, s.createRequest(t, accounts[n], fmt.Sprintf("request-%d", n), text))
	}
	for n, response := range s.sendGroup(t, requests...) { //nolint:bodyclose // readAll closes them
		text := readAll(t, response)
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
		if owner := pgtest.LookUp[uuid.UUID](t, s.store, `SELECT account_id FROM transfers WHERE id = $1`, record.ID); owner != accounts[n] {
			t.Errorf("the intent of %d belongs to %s, want %s", n, owner, accounts[n])
		}
	}
	for n := range accounts {
		if lines := strings.Count(s.log.String(), fmt.Sprintf(`"request_id":"request-%d"`, n)); lines != 1 {
			t.Errorf("request %d has %d lines in the log, want 1", n, lines)
		}
	}
}

// Members leave out the field that gateways add to every response without it, whatever the outcome; the same requests alone have it.
func TestGroup_CacheControl(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := uuid.New()
	statuses := map[string]int{"created": 201, "created once": 201, "repeated": 201, "reused": 422, "malformed": 400}
	members := func() []*http.Request {
		all := []*http.Request{
			s.createRequest(t, account, "created", transferBody), s.createRequest(t, account, "created once", transferBody),
			s.createRequest(t, account, "repeated", transferBody), s.createRequest(t, account, "reused", swapBody),
			s.createRequest(t, account, "malformed", "{}"),
		}
		for _, r := range all[1:4] {
			r.Header.Set("Idempotency-Key", "once")
		}
		return all
	}
	for _, request := range members() {
		id := request.Header.Get(wire.HeaderRequestID)
		request.Header.Set(wire.HeaderGatewaySecret, gatewaySecret)
		alone, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		text, control := readAll(t, alone), alone.Header.Values("Cache-Control")
		if diff := cmp.Diff([]string{"no-store"}, control); diff != "" || alone.StatusCode != statuses[id] {
			t.Errorf("alone, %s: %d %s, Cache-Control (-want +got):\n%s", id, alone.StatusCode, text, diff)
		}
	}
	requests := members()
	stream := s.postGroup(t, groupOf(t, requests...))
	defer stream.Body.Close()
	for range requests {
		number, response := readFrame(t, stream.Body, len(requests))
		id := requests[number].Header.Get(wire.HeaderRequestID)
		if text := readAll(t, response); response.StatusCode != statuses[id] || response.Header.Values("Cache-Control") != nil {
			t.Errorf("in a batch, %s: %d %s, %v", id, response.StatusCode, text, response.Header)
		}
	}
}

// A refusal is sent while the rows of the same batch still wait for their commit.
func TestGroup_RefusalsAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	block := pgtest.BlockCommits(t, s.store, "transfers")
	account := uuid.New()
	stream := s.postGroup(t, groupOf(t, s.createRequest(t, account, "good", transferBody), s.createRequest(t, account, "bad", "{}")))
	defer stream.Body.Close()
	number, response := readFrame(t, stream.Body, 2)
	first := []int{number, response.StatusCode}
	_ = response.Body.Close()
	block.Await(t, 1)
	block.Release(t)
	number, response = readFrame(t, stream.Body, 2)
	_ = response.Body.Close()
	if diff := cmp.Diff([]int{1, 400, 0, 201}, append(first, number, response.StatusCode)); diff != "" {
		t.Errorf("numbers and statuses (-want +got):\n%s", diff)
	}
}

// The rows of a batch are written in one commit, whichever request they are of.
func TestGroup_OneCommit(t *testing.T) {
	t.Parallel()
	s := start(t)
	requests := make([]*http.Request, wire.MaxBatchRequests)
	for n := range requests {
		requests[n] = s.createRequest(t, uuid.New(), fmt.Sprint(n), transferBody)
	}
	for n, response := range s.sendGroup(t, requests...) { //nolint:bodyclose // it is in memory
		if response.StatusCode != http.StatusCreated {
			t.Errorf("%d: %d", n, response.StatusCode)
		}
	}
	rows, commits := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers"), pgtest.LookUp[int](t, s.store, "SELECT count(DISTINCT xid) FROM events")
	if rows != len(requests) || commits != 1 {
		t.Errorf("%d rows in %d commits, want %d in one", rows, commits, len(requests))
	}
}

// Requests with one idempotency key that come in one batch make one intent, and all get it.
func TestGroup_SameKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := uuid.New()
	requests := make([]*http.Request, 8)
	for n := range requests {
		requests[n] = s.createRequest(t, account, fmt.Sprint(n), transferBody)
		requests[n].Header.Set("Idempotency-Key", "once")
	}
	locations, replayed := map[string]bool{}, 0
	for n, response := range s.sendGroup(t, requests...) { //nolint:bodyclose // it is in memory
		if response.StatusCode != http.StatusCreated {
			t.Errorf("%d: %d %s", n, response.StatusCode, readAll(t, response))
		}
		locations[response.Header.Get("Location")] = true
		if response.Header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if len(locations) != 1 || replayed != len(requests)-1 {
		t.Errorf("%d intents, %d replays, want 1 and %d", len(locations), replayed, len(requests)-1)
	}
}

// If the gateway closes the connection, the rows that still wait for their turn are not written.
func TestGroup_ConnectionClosed(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewPedanticRegistry()
	patient := pgtest.Patient()
	patient.Metrics = metrics
	s := startOn(t, pgtest.OpenWith(t, pgtest.Database(t), patient))
	waiting := func(n float64) func() bool {
		return func() bool { return metricstest.Values(t, metrics)["intents_core_writes_waiting"] == n }
	}
	block := pgtest.BlockCommits(t, s.store, "transfers")
	account, requests := uuid.New(), 0
	send := func(commits int) *http.Response {
		stream := s.postGroup(t, groupOf(t, s.createRequest(t, account, "refused", "{}"), s.createRequest(t, account, fmt.Sprint(requests), transferBody)))
		requests++
		_, response := readFrame(t, stream.Body, 2) // the refusal: the other one is on its way
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
	asynctest.Eventually(t, "the others are written", func() bool { return pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers") == 2 })
}

// Of a batch that is not one, nothing is carried out. Only a gateway may send one, and only what clients may ask for.
func TestGroup_Malformed(t *testing.T) {
	t.Parallel()
	s := start(t)
	whole := messageOf(t, s.createRequest(t, uuid.New(), "one", transferBody))
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
		"no method, no path":   with(wire.AppendBody(nil, transferBody)),
		"a path that is none":  asking("POST", "%zz"),
		"another method":       asking("GET", "/v2/transfers"),
		"an internal path":     asking("POST", "/internal/usage"),
		"a session route":      asking("POST", "/auth/sign-in/email"),
		"a batch":              asking("POST", wire.PathBatch),
		"another path by dots": asking("POST", "/v2/../internal/usage"),
	} {
		response := s.postGroup(t, batch)
		if mark := response.Header.Get(wire.HeaderCore); mark != wire.CoreRefused {
			t.Errorf("%s: core says %q of it", name, mark)
		}
		if got := readAll(t, response); response.StatusCode != http.StatusBadRequest || !strings.Contains(got, "INVALID_REQUEST") {
			t.Errorf("%s: %d %s", name, response.StatusCode, got)
		}
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM transfers`); n != 0 {
		t.Errorf("%d intents are stored, want none", n)
	}
	same(t, "without the secret", refused(t, 401, "NOT_A_GATEWAY", "Only gateways may call this address; call the gateway's.", wire.HeaderCore, wire.CoreRefused),
		s.call(t, "POST", wire.PathBatch, string(good), "X-Gateway-Secret", ""))
}

// A gateway of another release is told that there are no batches of its version, by the status that turns them off.
func TestGroup_OtherVersion(t *testing.T) {
	t.Parallel()
	s := start(t)
	batch := string(groupOf(t, s.createRequest(t, uuid.New(), "one", transferBody)))
	for _, version := range []string{"", "2", "4"} {
		same(t, version, refused(t, 404, "NOT_FOUND", "This core serves no batches of this version; none of its requests was carried out.", wire.HeaderCore, wire.CoreRefused),
			s.call(t, "POST", wire.PathBatch, batch, wire.HeaderBatch, version))
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM transfers`); n != 0 {
		t.Errorf("%d intents are stored, want none", n)
	}
}
