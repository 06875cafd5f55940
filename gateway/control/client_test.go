package control_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/control"
	"intents.internal/gateway/coretest"
	"intents.internal/gateway/upstream"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// questions are all that core is asked, each with the time that its asker has for it.
var questions = map[string]struct {
	within time.Duration
	ask    func(context.Context, *control.Client, apikey.Key) error
}{
	"key look-up": {time.Second, func(ctx context.Context, c *control.Client, key apikey.Key) error {
		_, err := c.VerifyKey(ctx, key.Hash())
		return err
	}},
	"key changes": {750 * time.Millisecond, func(ctx context.Context, c *control.Client, _ apikey.Key) error {
		_, err := c.KeyChanges(ctx, "1", 250*time.Millisecond)
		return err
	}},
	"document": {2 * time.Second, func(ctx context.Context, c *control.Client, _ apikey.Key) error {
		_, err := c.Document(ctx, "/v2/chains", "", "")
		return err
	}},
	"usage": {2 * time.Second, func(ctx context.Context, c *control.Client, _ apikey.Key) error {
		row := wire.KeyUsage{KeyID: uuid.NewString(), Minute: time.Now().UTC().Truncate(time.Minute), Accepted: 1, LastUsedAt: time.Now()}
		return c.ReportUsage(ctx, wire.UsageReport{ReportID: uuid.NewString(), Keys: []wire.KeyUsage{row}})
	}},
}

// A question that one core does not answer is answered by another, in the time that its asker has.
func TestClient_NextCore(t *testing.T) {
	t.Parallel()
	for question, q := range questions {
		for fault, inflict := range map[string]func(*coretest.Front){
			"stopped": func(f *coretest.Front) { f.Hangs.Store(true) },
			"gone":    func(f *coretest.Front) { f.Stop() },
			"unable":  func(*coretest.Front) {},
			"foreign": func(*coretest.Front) {},
		} {
			t.Run(question+", a core is "+fault, func(t *testing.T) {
				t.Parallel()
				core := coretest.Start(t, nil)
				key := core.AddKey(network.Test)
				failing, works := core.Front(t), core.Front(t)
				first := failing.URL
				var refused atomic.Int64
				switch fault {
				case "unable":
					first = refusing(t, &refused, http.StatusServiceUnavailable, wire.ServiceUnavailable)
				case "foreign": // it has another secret
					first = refusing(t, &refused, http.StatusUnauthorized, wire.NotAGateway)
				}
				cores := coretest.Unprobed(t, coretest.Options(first, works.URL))
				set, client := cores.Cores(), control.New(cores)
				set.All()[1].Begin() // so that the other is asked first
				inflict(failing)
				ctx, cancel := context.WithTimeout(t.Context(), 2*q.within) // a busy machine has twice as long
				defer cancel()
				began := time.Now()
				if err := q.ask(ctx, client, key); err != nil {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
				t.Logf("answered after %s", time.Since(began))
				if works.Asked.Load() != 1 {
					t.Errorf("the core that works was asked %d times", works.Asked.Load())
				}
				if fault != "unable" && set.All()[0].Up() {
					t.Error("the core that does not answer is not ejected")
				}
				if fault == "foreign" && refused.Load() != 1 {
					t.Error("the core with another secret got no request")
				}
				if fault == "unable" && (refused.Load() != 1 || !set.All()[0].Up()) {
					t.Error("a core that answers got no request, or is ejected")
				}
			})
		}
	}
}

// A call and a client's request go one way: the core that breaks off a call is ejected for both, another attempt is counted as one of
// theirs, and the connections of both are in the pools of the core that answers.
func TestClient_OneWayToCore(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	key := core.AddKey(network.Test)
	var asked atomic.Int64
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(broken.Close)
	first, err := url.Parse(broken.URL)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	options := coretest.Options(first, core.URL)
	options.Metrics = registry
	cores := coretest.Unprobed(t, options)
	cores.Cores().All()[1].Begin() // so that the other is asked first
	if _, err := control.New(cores).VerifyKey(t.Context(), key.Hash()); err != nil {
		t.Error(err)
	}
	for range 4 {
		var response upstream.Response
		err := cores.Do(&upstream.Request{Client: &fasthttp.Request{}, Target: []byte("/v2/tokens"), ID: []byte("1"), Began: time.Now()}, &response)
		if err != nil || response.Status() != http.StatusOK {
			t.Errorf("a client's request: %d, %v", response.Status(), err)
		}
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("the core that breaks off was asked %d times", got)
	}
	text, err := testutil.CollectAndFormat(registry, expfmt.TypeTextPlain, "intents_gateway_core_retries_total", "intents_gateway_pool_connections_open")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"intents_gateway_core_retries_total 1\n",
		fmt.Sprintf("intents_gateway_pool_connections_open{pool=\"%s own\"} 1\n", core.URL.Host),
		fmt.Sprintf("intents_gateway_pool_connections_open{pool=\"%s open\"} 1\n", core.URL.Host),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not among the metrics:\n%s", want, text)
		}
	}
}

// refusing is a core that answers everything with an error.
func refusing(t *testing.T, asked *atomic.Int64, status int, code wire.Code) *url.URL {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		mark := wire.CoreAnswered
		if code == wire.NotAGateway {
			mark = wire.CoreRefused
		}
		w.Header().Set(wire.HeaderCore, mark)
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%q,"message":"No."}`, code)
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// What only one core can be asked has all of the time, and its refusal is told.
func TestClient_OnlyCore(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	client := control.New(coretest.Unprobed(t, coretest.Options(refusing(t, &refused, http.StatusServiceUnavailable, wire.ServiceUnavailable))))
	_, err := client.KeyChanges(t.Context(), "1", time.Millisecond)
	if err == nil || err.Error() != "get key changes: core answered 503 SERVICE_UNAVAILABLE" {
		t.Errorf("error: %v", err)
	}
	if _, err := client.VerifyKey(t.Context(), apikey.Hash{}); err == nil || errors.Is(err, control.ErrUnknownKey) {
		t.Errorf("error: %v", err)
	}
	if refused.Load() != 2 {
		t.Errorf("core was asked %d times, want 2", refused.Load())
	}
}

// What core answers is an answer: it is not asked for elsewhere.
func TestClient_RefusalNotRetried(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	one, other := core.Front(t), core.Front(t)
	client := control.New(coretest.Unprobed(t, coretest.Options(one.URL, other.URL)))
	if _, err := client.VerifyKey(t.Context(), apikey.New(network.Test).Hash()); !errors.Is(err, control.ErrUnknownKey) {
		t.Errorf("error: %v", err)
	}
	core.ExpireCursors()
	if _, err := client.KeyChanges(t.Context(), "0", 0); !errors.Is(err, control.ErrCursorExpired) {
		t.Errorf("error: %v", err)
	}
	if got := one.Asked.Load() + other.Asked.Load(); got != 2 {
		t.Errorf("2 questions were asked %d times", got)
	}
}
