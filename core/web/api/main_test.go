package api_test

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
	"intents.internal/core/web/console"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/retrytest"
	"intents.internal/pkg/wire"
)

const gatewaySecret = "a secret that only the gateways know"

// testRequestID is the id of a client's request unless a test says otherwise. Errors have it in their body.
const testRequestID = "01a1fc68-0656-76d5-9bf2-4a428e39a05a"

// service is core's API on a database of the test's own, with the registry of pgtest.
type service struct {
	url     string
	handler http.Handler
	store   *rooms.Rooms
	live    *registry.LiveRegistry
	log     *asynctest.Buffer
}

// settings are what a test may change before it starts the service.
type settings struct {
	api      web.Config
	identity identity.Config
	intents  intents.Config
	quotes   quotes.Config
	// webhooks are the operator's rules, nil for none.
	webhooks *webhooks.Rules
	// pages adds the console.
	pages bool
}

// wide are limits that no test reaches that is not about them.
var wide = identity.Limits{
	SignInPerIP: identity.MaxLimit, SignInPerAccount: identity.MaxLimit, SignInPerAccountAndIP: identity.MaxLimit, SignUpPerIP: identity.MaxLimit,
	KeysPerAccount: identity.MaxLimit, KeysPerIP: identity.MaxLimit, MailsPerAddress: identity.MaxLimit, MailsPerIP: identity.MaxLimit,
}

// start serves until the test ends.
func start(t *testing.T, change ...func(*settings)) *service {
	t.Helper()
	return startOn(t, pgtest.New(t), change...)
}

func startOn(t *testing.T, store *rooms.Rooms, change ...func(*settings)) *service {
	t.Helper()
	pgtest.LoadRegistry(t, store)
	live, err := registry.NewLiveRegistry(t.Context(), store.Registry)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{store: store, live: live, log: &asynctest.Buffer{}}
	log, metrics := telemetry.NewLogger(s.log, "core"), telemetry.NewRegistry()
	config := settings{
		api: web.Config{
			Now:        store.Identities.Now,
			Identities: store.Identities, Transfers: store.Intents, Events: store.Feed, Registry: live, Feed: feed.NewFollower(store.Feed), Log: log, Metrics: metrics, Secrets: route.NewSecrets(gatewaySecret, ""), PublicURL: "http://intents.example",
			AccessLog: log,
		},
		intents: intents.Config{Store: store.Intents, Registry: live},
		quotes:  quotes.Config{Store: store.Quotes, Registry: live},
		identity: identity.Config{
			Store: store.Identities, Mail: store.Mail, Passwords: pgtest.Passwords(), Limits: wide, SignUpOpen: true, Log: log, Metrics: metrics, PublicURL: "http://intents.example",
		},
	}
	for _, c := range change {
		c(&config)
	}
	config.api.Identity = identity.New(config.identity)
	config.api.Webhooks = webhooks.NewService(store.Webhooks, config.webhooks, config.api.Identity)
	config.api.Intents = intents.New(config.intents)
	config.quotes.Intents = config.api.Intents
	config.api.Quotes = quotes.New(config.quotes)
	if config.pages {
		config.api.Console, err = console.New(console.Config{
			Now:      store.Identities.Now,
			Identity: config.api.Identity, Identities: store.Identities, Transfers: store.Intents, Events: store.Feed, Webhooks: config.api.Webhooks, Registry: live,
			Intents: config.api.Intents, Cookie: identity.NewCookie(config.api.PublicURL), PublicURL: config.api.PublicURL, Log: log,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.handler, err = web.New(config.api); err != nil {
		t.Fatal(err)
	}
	s.url = serve(t, s.handler)
	return s
}

func serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// answer is a whole response: every header but Date, Content-Length and Vary (which TestCompression sees to), the body as JSON with what differs from run to
// run made equal.
type answer struct {
	Status int
	Header map[string]string
	Body   any
}

// call makes a request as a gateway does. Further headers come as name and value in turn; an empty value leaves one out,
// and a name that begins with + is given once more.
func (s *service) call(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	response := s.send(t, method, path, body, header...) //nolint:bodyclose // readAll closes it
	raw := readAll(t, response)
	return answerOf(t, response, raw)
}

func answerOf(t *testing.T, response *http.Response, raw string) answer {
	t.Helper()
	got := answer{Status: response.StatusCode, Header: map[string]string{}}
	if response.Header.Get(wire.HeaderCore) == wire.CoreAnswered { // what every response is, unless a test says otherwise
		response.Header.Del(wire.HeaderCore)
	}
	for name, values := range response.Header {
		if name != "Date" && name != "Content-Length" && name != "Vary" {
			got.Header[name] = changing.ReplaceAllString(strings.Join(values, "\n"), "<$1>")
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

// readAll reads a body to its end, and holds the response to openapi.json. Of an error with testRequestID it returns the rest.
func readAll(t *testing.T, response *http.Response) string {
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

func (s *service) send(t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Gateway-Secret", gatewaySecret)
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
	if inBatch && method == http.MethodPost && path == "/v2/transfers" && len(body) < wire.MaxBatchBytes/2 && request.Header.Get("X-Gateway-Secret") == gatewaySecret {
		return s.sendGroup(t, request)[0]
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return response
}

var (
	// changing is what of a header differs from run to run.
	changing = regexp.MustCompile(`[0-9A-Z]{52}()|[A-Z2-7]{26}\.[A-Za-z0-9_-]{43}()|"[0-9a-f]{24}"()`)
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

// want is an answer of this status and JSON text that nobody may keep, with headers besides the Content-Type as name and value in turn.
func want(t *testing.T, status int, body string, header ...string) answer {
	t.Helper()
	a := answer{Status: status, Header: map[string]string{"Cache-Control": "no-store"}}
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

// refused is an answer {code, message}.
func refused(t *testing.T, status int, code, message string, header ...string) answer {
	t.Helper()
	a := want(t, status, "{}", header...)
	a.Body = map[string]any{"code": code, "message": message}
	return a
}

// detailed is a refusal with one member of details.
func detailed(a answer, member string, value any) answer {
	a.Body.(map[string]any)["details"] = map[string]any{member: value} //nolint:forcetypeassert // refused has made it
	return a
}

// conflict is the 409 of an intent whose status does not allow what was asked.
func conflict(t *testing.T, status, message string) answer {
	t.Helper()
	return detailed(refused(t, 409, "STATUS_CONFLICT", message), "status", status)
}

// tooLarge is the 413 of a body of more than 16 KiB.
func tooLarge(t *testing.T) answer {
	t.Helper()
	return detailed(refused(t, 413, "PAYLOAD_TOO_LARGE", "The body must not be longer than 16384 bytes."), "maxBytes", 16384.0)
}

// invalid is a 400 with these issues, a path and a message in turn.
func invalid(t *testing.T, issues ...string) answer {
	t.Helper()
	a := refused(t, 400, "INVALID_REQUEST", "The request is not valid; see details.issues.")
	list := []any{}
	for i := 0; i < len(issues); i += 2 {
		list = append(list, map[string]any{"path": issues[i], "message": issues[i+1]})
	}
	a.Body.(map[string]any)["details"] = map[string]any{"issues": list}
	return a
}

// same compares answers; the least Retry-After stands in want.
func same(t *testing.T, what string, want, got answer) {
	t.Helper()
	if least, ok := want.Header["Retry-After"]; ok {
		got.Header = maps.Clone(got.Header)
		got.Header["Retry-After"] = retrytest.Least(got.Status, got.Header["Retry-After"], least)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// keyed are the headers a gateway sends with the request of a key of this account and environment.
func keyed(accountID uuid.UUID, environment string) []string {
	return []string{
		"X-Account-Id", accountID.String(), "X-Key-Id", "0199d3b4-0000-7000-8000-000000000001", "X-Key-Env", environment,
	}
}
