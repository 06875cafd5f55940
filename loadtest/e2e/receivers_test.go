package e2e_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// The receivers of core/web/api/webhooks.md, as processes of their own. The page shows them as they are.

const receiverSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the specification's examples

// receiverLanguages start a receiver; they need the Go command, or Node.
var receiverLanguages = map[string]func(t *testing.T) (path string, args []string){
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
		project.run(t, nil, "tsc", "--project", "tsconfig.receiver.json", "--outDir", "built")
		return "node", []string{filepath.Join(project.dir, "built", "receiver.js")}
	},
}

// receiver is a receiver's program with its address.
type receiver struct {
	url, path string
	args, env []string
	process   *embedded.Process
	log       lockedBuffer
}

// newReceiver builds the receiver of a language, which reads the feed of this API with this key.
func newReceiver(t *testing.T, language, api, key string) *receiver {
	t.Helper()
	path, args := receiverLanguages[language](t)
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{url: fmt.Sprintf("http://127.0.0.1:%d/events", port), path: path, args: args}
	r.env = append(os.Environ(), "API_URL="+api, "API_KEY="+key, fmt.Sprintf("LISTEN=127.0.0.1:%d", port))
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("the %s receiver said:\n%s", language, r.log.String())
		}
	})
	return r
}

// start starts the receiver with this secret and waits until it listens.
func (r *receiver) start(t *testing.T, secret string) {
	t.Helper()
	var err error
	if r.process, err = embedded.StartProcess(embedded.Command{
		Path: r.path, Args: r.args, Env: append(slices.Clone(r.env), "WEBHOOK_SECRET="+secret), Output: func(line string) { fmt.Fprintln(&r.log, line) },
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := deliver(t, r.url, "", nil)
		return err
	})
}

// stop kills the receiver if it runs.
func (r *receiver) stop() {
	if r.process != nil {
		r.process.Kill()
	}
}

// handled are the lines of the events that the receiver has handled, in order.
func (r *receiver) handled() (lines []string) {
	for line := range strings.Lines(r.log.String()) {
		if what, found := strings.CutPrefix(line, "handled "); found {
			lines = append(lines, strings.TrimSuffix(what, "\n"))
		}
	}
	return lines
}

// awaitHandled fails the test unless the receiver handles exactly these, in this order.
func (r *receiver) awaitHandled(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, func() error {
		if diff := cmp.Diff(want, r.handled()); diff != "" {
			return fmt.Errorf("handled events (-want +got):\n%s", diff)
		}
		return nil
	})
}

// sign is the header webhook-signature as the specification of Standard Webhooks 1.0 has it.
func sign(t *testing.T, secret, id string, at time.Time, body []byte) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// deliver posts a body with these headers, which are names and values in turn, and returns the status.
func deliver(t *testing.T, url, body string, headers []string) (status int, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// transferBody is the body of an intent's nth event.
func transferBody(intent string, n int) string {
	return fmt.Sprintf(`{"type":"transfer.created","timestamp":"2026-11-22T11:44:43.000Z","environment":"test","sequence":%d,"data":{"id":%q}}`, n, intent)
}

// Receivers take what is signed with their secret, once, and refuse everything else.
func TestWebhooks_ReceiversVerify(t *testing.T) {
	t.Parallel()
	const id, other = "evt_1", "whsec_b3RoZXIgc2VjcmV0IG9mIHNvbWVib2R5IGVsc2U="
	now := time.Now()
	body := transferBody("a", 1)
	signed := func(secret, id string, at time.Time) []string {
		return []string{"webhook-id", id, "webhook-timestamp", strconv.FormatInt(at.Unix(), 10), "webhook-signature", sign(t, secret, id, at, []byte(body))}
	}
	good := signed(receiverSecret, id, now)
	with := func(name, value string) []string { return append(signed(receiverSecret, id, now), name, value) }
	refused := map[string]struct {
		body    string
		headers []string
	}{
		"no headers":               {body, nil},
		"no signature":             {body, good[:4]},
		"another secret":           {body, signed(other, id, now)},
		"another body":             {strings.Replace(body, "test", "live", 1), good},
		"another id":               {body, with("webhook-id", "evt_2")},
		"another time":             {body, with("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10))},
		"another version":          {body, with("webhook-signature", strings.Replace(good[5], "v1,", "v2,", 1))},
		"a replay of an hour ago":  {body, signed(receiverSecret, id, now.Add(-time.Hour))},
		"a time an hour ahead":     {body, signed(receiverSecret, id, now.Add(time.Hour))},
		"a time that is no number": {body, with("webhook-timestamp", "now")},
	}
	for language := range receiverLanguages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, language, (&feedStandIn{}).start(t), "key")
			r.start(t, receiverSecret)
			expectStatus := func(name, body string, headers []string, want int) {
				t.Helper()
				if got, err := deliver(t, r.url, body, headers); err != nil || got != want {
					t.Errorf("%s is answered %d, %v; want %d", name, got, err, want)
				}
			}
			for name, c := range refused {
				expectStatus(name, c.body, c.headers, http.StatusUnauthorized)
			}
			expectStatus("a signed event", body, good, http.StatusNoContent)
			expectStatus("the same again", body, signed(receiverSecret, id, now.Add(time.Second)), http.StatusNoContent)
			rotated := signed(receiverSecret, "evt_2", now)
			rotated[5] = sign(t, other, "evt_2", now, []byte(body)) + " " + rotated[5]
			expectStatus("an event with two signatures", body, rotated, http.StatusNoContent)
			r.awaitHandled(t, "evt_1 transfer.created", "evt_2 transfer.created")
		})
	}
}

// A receiver begins with the feed, reads on from its cursor when a sequence shows a gap, knows what is late, and begins again where the
// cursor is too old.
func TestWebhooks_ReceiversFillGaps(t *testing.T) {
	t.Parallel()
	for language := range receiverLanguages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			feed := &feedStandIn{}
			feed.add("evt_1", transferBody("a", 1))
			r := newReceiver(t, language, feed.start(t), "the key")
			r.start(t, receiverSecret)
			r.awaitHandled(t, "evt_1 transfer.created")
			send := func(id, body string) {
				t.Helper()
				now := time.Now()
				if got, err := deliver(t, r.url, body, []string{
					"webhook-id", id, "webhook-timestamp", strconv.FormatInt(now.Unix(), 10), "webhook-signature", sign(t, receiverSecret, id, now, []byte(body)),
				}); err != nil || got != http.StatusNoContent {
					t.Errorf("%s is answered %d, %v", id, got, err)
				}
			}
			asynctest.Eventually(t, "the receiver has read the feed", func() bool { return feed.readToEnd() > 0 })
			feed.add("evt_2", transferBody("a", 2))
			feed.add("evt_3", transferBody("a", 3))
			send("evt_3", transferBody("a", 3)) // evt_2 was not delivered
			r.awaitHandled(t, "evt_1 transfer.created", "evt_3 transfer.created", "evt_2 transfer.created late")
			asynctest.Eventually(t, "the receiver has read the feed again", func() bool { return feed.readToEnd() > 1 })
			feed.expire()
			feed.add("evt_4", transferBody("b", 1))
			feed.add("evt_5", transferBody("b", 2))
			send("evt_5", transferBody("b", 2))
			r.awaitHandled(t, "evt_1 transfer.created", "evt_3 transfer.created", "evt_2 transfer.created late",
				"evt_5 transfer.created", "evt_4 transfer.created late")
			if diff := cmp.Diff(map[string]bool{"the key": true}, feed.usedKeys()); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

// A receiver without a secret would verify what anybody signs with an empty key, so it does not start.
func TestWebhooks_ReceiversNeedSecret(t *testing.T) {
	t.Parallel()
	for language, build := range receiverLanguages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			path, args := build(t)
			command := exec.CommandContext(t.Context(), path, args...)
			command.Env = append(os.Environ(), "WEBHOOK_SECRET=", "LISTEN=127.0.0.1:0")
			if out, err := command.CombinedOutput(); err == nil {
				t.Errorf("it started: %s", out)
			}
		})
	}
}

// The page shows the receivers as they are tested.
func TestWebhooks_PageShowsReceivers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../core/web/api/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for path, language := range map[string]string{"receiver/main.go": "go", "js/receiver.ts": "ts"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "```"+language+"\n"+string(text)+"```\n") {
			t.Errorf("core/web/api/webhooks.md does not show loadtest/e2e/%s as it is", path)
		}
	}
}
