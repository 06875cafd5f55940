// Package webtest starts core's HTTP server for tests, calls it as a gateway does, and holds its responses to openapi.json.
package webtest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/quotes"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/web"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/retrytest"
	"intents.internal/pkg/wire"
)

// GatewaySecret is what every request is sent with.
const GatewaySecret = "a secret that only the gateways know"

const publicURL = "http://intents.example"

// testRequestID is the id of a client's request unless a test says otherwise. Errors have it in their body.
const testRequestID = "01a1fc68-0656-76d5-9bf2-4a428e39a05a"

// Service is core's HTTP server on a database of the test's own, with the registry of pgtest.
type Service struct {
	URL     string
	Handler http.Handler
	Store   *rooms.Rooms
	Live    *registry.LiveRegistry
	Log     *asynctest.Buffer
}

// Settings are what a test may change before it starts the service.
type Settings struct {
	API      web.Config
	Identity identity.Config
	Intents  intents.Config
	Quotes   quotes.Config
	// Webhooks are the operator's rules, nil for none.
	Webhooks *webhooks.Rules
	// Pages adds the console.
	Pages bool
}

// wide are limits that no test reaches that is not about them.
var wide = identity.Limits{
	SignInPerIP: identity.MaxLimit, SignInPerAccount: identity.MaxLimit, SignInPerAccountAndIP: identity.MaxLimit, SignUpPerIP: identity.MaxLimit,
	KeysPerAccount: identity.MaxLimit, KeysPerIP: identity.MaxLimit, MailsPerAddress: identity.MaxLimit, MailsPerIP: identity.MaxLimit,
}

// Start serves until the test ends.
func Start(t *testing.T, change ...func(*Settings)) *Service {
	t.Helper()
	return StartOn(t, pgtest.New(t), change...)
}

// StartOn is Start on a database that the test has opened.
func StartOn(t *testing.T, store *rooms.Rooms, change ...func(*Settings)) *Service {
	t.Helper()
	pgtest.LoadRegistry(t, store)
	live, err := registry.NewLiveRegistry(t.Context(), store.Registry)
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{Store: store, Live: live, Log: &asynctest.Buffer{}}
	log, metrics := telemetry.NewLogger(s.Log, "core"), telemetry.NewRegistry()
	config := Settings{
		API: web.Config{
			Identities: store.Identities, Transfers: store.Intents, Events: store.Feed, Registry: live, Feed: feed.NewFollower(store.Feed), Now: store.Now,
			Secrets: route.NewSecrets(GatewaySecret, ""), PublicURL: publicURL, Log: log, AccessLog: log, Metrics: metrics,
		},
		Intents: intents.Config{Store: store.Intents, Registry: live},
		Quotes:  quotes.Config{Store: store.Quotes, Registry: live},
		Identity: identity.Config{
			Store: store.Identities, Mail: store.Mail, Passwords: pgtest.Passwords(), Limits: wide, SignUpOpen: true, PublicURL: publicURL,
			Log: log, Metrics: metrics,
		},
	}
	for _, c := range change {
		c(&config)
	}
	config.API.Identity = identity.New(config.Identity)
	config.API.Webhooks = webhooks.NewService(store.Webhooks, config.Webhooks, config.API.Identity)
	config.API.Intents = intents.New(config.Intents)
	config.Quotes.Intents = config.API.Intents
	config.API.Quotes = quotes.New(config.Quotes)
	if config.Pages {
		if config.API.Console, err = config.API.NewConsole(); err != nil {
			t.Fatal(err)
		}
	}
	if s.Handler, err = web.New(config.API); err != nil {
		t.Fatal(err)
	}
	s.URL = Serve(t, s.Handler)
	return s
}

// Serve serves a handler until the test ends.
func Serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// Answer is a whole response: every header but Date, Content-Length and Vary, the body as JSON with what differs from run to run made equal.
type Answer struct {
	Status int
	Header map[string]string
	Body   any
}

// Call makes a request as a gateway does. Further headers come as name and value in turn; an empty value leaves one out,
// and a name that begins with + is given once more.
func (s *Service) Call(t *testing.T, method, path, body string, header ...string) Answer {
	t.Helper()
	response := s.Send(t, method, path, body, header...) //nolint:bodyclose // ReadAll closes it
	raw := ReadAll(t, response)
	return AnswerOf(t, response, raw)
}

// AnswerOf is the answer of a response whose body was read.
func AnswerOf(t *testing.T, response *http.Response, raw string) Answer {
	t.Helper()
	got := Answer{Status: response.StatusCode, Header: map[string]string{}}
	if response.Header.Get(wire.HeaderCore) == wire.CoreAnswered { // what every response is, unless a test says otherwise
		response.Header.Del(wire.HeaderCore)
	}
	for name, values := range response.Header {
		if name != "Date" && name != "Content-Length" && name != "Vary" {
			got.Header[name] = Changing.ReplaceAllString(strings.Join(values, "\n"), "<$1>")
		}
	}
	if len(raw) > 0 {
		if err := json.Unmarshal([]byte(raw), &got.Body); err != nil {
			t.Fatalf("%s %s: the body is not JSON: %s", response.Request.Method, response.Request.URL, raw)
		}
		got.Body = normal("", got.Body)
	}
	return got
}

// ReadAll reads a body to its end, and holds the response to openapi.json. Of an error with testRequestID it returns the rest.
func ReadAll(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("read the body: %v", err)
	}
	mustConform(t, response, string(raw))
	if response.StatusCode >= http.StatusBadRequest {
		return strings.Replace(string(raw), `,"requestId":"`+testRequestID+`"`, "", 1)
	}
	return string(raw)
}

// Send makes a request as Call does, and returns the response unread.
func (s *Service) Send(t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Gateway-Secret", GatewaySecret)
	if !strings.HasPrefix(path, "/internal/") { // which gateways call by themselves
		request.Header.Set("X-Request-Id", testRequestID)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		name, more := strings.CutPrefix(header[i], "+")
		if !more {
			request.Header.Del(name)
		}
		if header[i+1] != "" {
			request.Header.Add(name, header[i+1])
		}
	}
	isCreation := method == http.MethodPost && path == "/v2/transfers"
	if InBatch && isCreation && len(body) < wire.MaxBatchBytes/2 && request.Header.Get("X-Gateway-Secret") == GatewaySecret {
		return s.SendGroup(t, request)[0]
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

var (
	// Changing is what of a header differs from run to run.
	Changing = regexp.MustCompile(`[0-9A-Z]{52}()|[A-Z2-7]{26}\.[A-Za-z0-9_-]{43}()|"[0-9a-f]{24}"()`)
	uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	keyForm  = regexp.MustCompile(`^sk_(test|live)_[A-Za-z0-9]{64}$`)
	startOf  = regexp.MustCompile(`^sk_(test|live)_[A-Za-z0-9]{4}$`)
)

// normal writes ids, times and keys as <id>, <time> and <key>, each only where it has its right form.
func normal(name string, value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = normal(name, v[i])
		}
	case map[string]any:
		for field := range v {
			v[field] = normal(field, v[field])
		}
	case string:
		switch {
		case uuidForm.MatchString(v):
			return "<id>"
		case timeForm.MatchString(v):
			return "<time>"
		case keyForm.MatchString(v):
			return "<key>"
		case name == "start" && startOf.MatchString(v):
			return v[:8] + "<start>"
		case name == "cursor" && v != "":
			return "<cursor>"
		}
	}
	return value
}

// Want is an answer of this status and JSON text that nobody may keep, with headers besides the Content-Type as name and value in turn.
func Want(t *testing.T, status int, body string, header ...string) Answer {
	t.Helper()
	a := Answer{Status: status, Header: map[string]string{"Cache-Control": "no-store"}}
	if body != "" {
		a.Header["Content-Type"] = "application/json"
		if err := json.Unmarshal([]byte(body), &a.Body); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
	}
	for i := 0; i < len(header); i += 2 {
		a.Header[header[i]] = header[i+1]
	}
	return a
}

// Refused is an answer {code, message}.
func Refused(t *testing.T, status int, code, message string, header ...string) Answer {
	t.Helper()
	a := Want(t, status, "{}", header...)
	a.Body = map[string]any{"code": code, "message": message}
	return a
}

// Detailed is a refusal with one member of details.
func Detailed(a Answer, member string, value any) Answer {
	a.Body.(map[string]any)["details"] = map[string]any{member: value} //nolint:forcetypeassert // Refused has made it
	return a
}

// Conflict is the 409 of an intent whose status does not allow what was asked.
func Conflict(t *testing.T, status, message string) Answer {
	t.Helper()
	return Detailed(Refused(t, 409, "STATUS_CONFLICT", message), "status", status)
}

// TooLarge is the 413 of a body of more than 16 KiB.
func TooLarge(t *testing.T) Answer {
	t.Helper()
	return Detailed(Refused(t, 413, "PAYLOAD_TOO_LARGE", "The body must not be longer than 16384 bytes."), "maxBytes", 16384.0)
}

// Invalid is a 400 with these issues, a path and a message in turn.
func Invalid(t *testing.T, issues ...string) Answer {
	t.Helper()
	a := Refused(t, 400, "INVALID_REQUEST", "The request is not valid; see details.issues.")
	list := []any{}
	for i := 0; i < len(issues); i += 2 {
		list = append(list, map[string]any{"path": issues[i], "message": issues[i+1]})
	}
	a.Body.(map[string]any)["details"] = map[string]any{"issues": list}
	return a
}

// MaskMessages makes a message that is the JSON library's own equal to "…", as long as there is one.
func MaskMessages(a Answer, issues []string) Answer {
	details, _ := a.Body.(map[string]any)["details"].(map[string]any)
	list, _ := details["issues"].([]any)
	for i, issue := range list {
		fields := issue.(map[string]any)
		if 2*i+1 < len(issues) && issues[2*i+1] == "…" && fields["message"] != "" {
			fields["message"] = "…"
		}
	}
	return a
}

// Same compares answers; the least Retry-After stands in want.
func Same(t *testing.T, what string, want, got Answer) {
	t.Helper()
	if least, ok := want.Header["Retry-After"]; ok {
		got.Header = maps.Clone(got.Header)
		got.Header["Retry-After"] = retrytest.Least(got.Status, got.Header["Retry-After"], least)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// Keyed are the headers a gateway sends with the request of a key of this account and environment.
func Keyed(accountID uuid.UUID, environment string) []string {
	return []string{
		"X-Account-Id", accountID.String(), "X-Key-Id", "0199d3b4-0000-7000-8000-000000000001", "X-Key-Env", environment,
	}
}
