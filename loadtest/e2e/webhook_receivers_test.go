package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/freeport"
)

// buildReceiver builds the receivers of core/web/docs/pages/webhooks.md, by language; they need the Go command, or Node.
var buildReceiver = map[string]func(t *testing.T) (path string, args []string){
	"Go": func(t *testing.T) (string, []string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "receiver")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "./receiver").CombinedOutput(); err != nil {
			t.Fatalf("build the receiver: %v\n%s", err, out)
		}
		return path, nil
	},
	"TypeScript": func(t *testing.T) (string, []string) {
		t.Helper()
		project := newNodeProject(t)
		project.run(t, "tsc", "--outDir", "built")
		return "node", []string{filepath.Join(project.dir, "built", "receiver.js")}
	},
}

// receiver is a receiver's program with its address.
type receiver struct {
	url     string
	program *system.Process
	// reading is set from a page with events until one without any, with which a reading of the feed ends.
	reading *atomic.Bool
}

// newReceiver builds the receiver of a language, which reads the feed of the shared stack with this key.
func newReceiver(t *testing.T, language, key string) *receiver {
	t.Helper()
	path, args := buildReceiver[language](t)
	address := freeport.Address(t)
	reading := &atomic.Bool{}
	program := &system.Process{}
	program.Prepare(t, embedded.Command{Path: path, Args: args, Env: append(os.Environ(),
		"API_URL="+watchFeed(t, reading), "API_KEY="+key, "LISTEN="+address)})
	return &receiver{url: "http://" + address + "/events", reading: reading, program: program}
}

// watchFeed starts a proxy before the gateway, which says whether the last page of the feed had events.
func watchFeed(t *testing.T, reading *atomic.Bool) (url string) {
	t.Helper()
	gateway := must(neturl.Parse(shared.Stack.Env().GatewayURL))(t)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(gateway)
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(response *http.Response) error {
			body, err := io.ReadAll(response.Body)
			response.Body = io.NopCloser(bytes.NewReader(body))
			reading.Store(response.StatusCode != http.StatusOK || !bytes.HasPrefix(body, []byte(`{"events":[],`)))
			return err
		},
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// restart starts the receiver with this secret and waits until it listens.
func (r *receiver) restart(t *testing.T, secret string) {
	t.Helper()
	r.program.Kill()
	r.program.Command.Env = append(r.program.Command.Env, "WEBHOOK_SECRET="+secret) // the last of a name counts
	r.program.Start(t)
	asynctest.Succeeds(t, func() error {
		_, err := system.NewClient(t, r.url, "").Try(http.MethodPost, "", "")
		return err
	})
}

// awaitHandled fails the test unless the receiver, with its earlier processes, handles exactly these events, in this order. It returns once
// the feed is read to its end, so that the next event comes as a delivery first.
func (r *receiver) awaitHandled(t *testing.T, want ...string) {
	t.Helper()
	asynctest.Succeeds(t, func() error {
		var handled []string
		for line := range strings.Lines(r.program.Log.String()) {
			if what, found := strings.CutPrefix(line, "handled "); found {
				handled = append(handled, strings.TrimSuffix(what, "\n"))
			}
		}
		if diff := cmp.Diff(want, handled); diff != "" {
			return fmt.Errorf("handled events (-want +got):\n%s", diff)
		}
		if r.reading.Load() {
			return errors.New("the receiver is still reading the feed")
		}
		return nil
	})
}

// mustRefuse posts what was not signed now with the receiver's secret, and a delivery that was received before.
func (r *receiver) mustRefuse(t *testing.T, sent system.Delivery, secret string) {
	t.Helper()
	sent = signed(t, sent, secret, time.Now())
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
		want   int
	}{
		"no headers":     {nil, sent.Body, http.StatusUnauthorized},
		"another body":   {sent.Header, bytes.Replace(sent.Body, []byte("test"), []byte("live"), 1), http.StatusUnauthorized},
		"an hour ago":    {signed(t, sent, secret, time.Now().Add(-time.Hour)).Header, sent.Body, http.StatusUnauthorized},
		"the same again": {sent.Header, sent.Body, http.StatusNoContent},
	} {
		var headers []string
		for header, values := range c.header {
			headers = append(headers, header, values[0])
		}
		if got := system.NewClient(t, r.url, "").Do(http.MethodPost, "", c.body, headers...).Status; got != c.want {
			t.Errorf("%s is answered %d; want %d", name, got, c.want)
		}
	}
	// An empty secret would verify what anybody signs with it.
	command := exec.CommandContext(t.Context(), r.program.Command.Path, r.program.Command.Args...)
	command.Env = append(os.Environ(), "WEBHOOK_SECRET=", "LISTEN=127.0.0.1:0")
	if out, err := command.CombinedOutput(); err == nil {
		t.Errorf("it started without a secret: %s", out)
	}
}

// The page shows the receivers as they are tested.
func TestWebhooks_PageShowsReceivers(t *testing.T) {
	journey(t)
	t.Parallel()
	page := must(os.ReadFile("../../core/web/docs/pages/webhooks.md"))(t)
	for path, language := range map[string]string{"receiver/main.go": "go", "js/receiver.ts": "ts"} {
		text := must(os.ReadFile(path))(t)
		if !strings.Contains(string(page), "```"+language+"\n"+string(text)+"```\n") {
			t.Errorf("core/web/docs/pages/webhooks.md does not show loadtest/e2e/%s as it is", path)
		}
	}
}
