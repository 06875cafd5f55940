package webhooks_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/telemetry"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// service is a database with accounts and endpoints, and the rules of an operator who allows loopback.
type service struct {
	*database

	// timeout is that of attempts, 0 for the one that a service has.
	timeout time.Duration
	// mailQueued is called after mails were queued; with nil none are.
	mailQueued func()
}

func newService(t *testing.T) *service {
	t.Helper()
	return &service{database: newDatabase(t, onlyReceiver())}
}

// receiver is the one loopback address that the tests' networks allow; forbidden is another.
const (
	receiver  = "127.0.0.1"
	forbidden = "127.0.0.2"
)

// onlyReceiver are the networks with receiver besides public addresses.
func onlyReceiver() *outbound.Networks {
	return outbound.NewNetworks([]netip.Prefix{netip.MustParsePrefix(receiver + "/32")})
}

// assignPositions puts the events of intents into the feed.
func (s *service) assignPositions() {
	s.Helper()
	if _, err := s.Store.Feed.AssignPositions(s.Context(), true, false); err != nil {
		s.Fatal(err)
	}
}

// core is a process that dispatches and sends.
type core struct {
	metrics *prometheus.Registry
	// asked are the statements of its store.
	asked pgtest.Statements
	// cancel ends the process, and stop also waits for it.
	cancel, stop func()
}

// start runs a core until the test ends.
func (s *service) start() *core {
	s.Helper()
	store, c := pgtest.OpenImpatient(s.T, s.URL), &core{metrics: telemetry.NewRegistry()}
	pgtest.Watch(store, &c.asked)
	follower := feed.NewFollower(store.Feed)
	client := webhooks.NewClient(s.Rules.Networks, store.Now)
	if s.timeout != 0 {
		client.SetTimeout(s.timeout)
	}
	dispatcher := webhooks.New(webhooks.Config{
		Store: store.Webhooks, Feed: follower, Sealer: s.Rules.Sealer, Log: slog.New(slog.NewTextHandler(s.Output(), nil)), Metrics: c.metrics, Grace: time.Minute,
		Client: client, MailQueued: s.mailQueued,
	})
	ctx, cancel := context.WithCancel(s.Context())
	var running sync.WaitGroup
	running.Go(func() { dispatcher.Run(ctx) })
	running.Go(func() {
		ticker := time.NewTicker(feed.Interval)
		defer ticker.Stop()
		for ctx.Err() == nil {
			_, _ = follower.Follow(ctx)
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	c.cancel, c.stop = cancel, func() { cancel(); running.Wait() }
	s.Cleanup(c.stop)
	return c
}

// rotate replaces the secret of an endpoint as its owner does, and returns the new one.
func (s *service) rotate(e *webhooks.Endpoint, grace time.Duration) string {
	s.Helper()
	var secret webhooks.Secret
	entry := pgtest.AuditEntry(e.AccountID, account.WebhookSecretRotated)
	_, err := s.Store.Webhooks.ChangeWebhook(s.Context(), access.OfOperator, e.Owner(), e.ID, &entry, func(e *webhooks.Endpoint) (detail string, err error) {
		secret, detail, err = s.Rules.Rotate(e, grace, s.Store.Now())
		return detail, err
	})
	if err != nil {
		s.Fatal(err)
	}
	return secret.Reveal()
}

// remove deletes an endpoint as its owner does.
func (s *service) remove(e *webhooks.Endpoint) {
	s.Helper()
	if err := s.Store.Webhooks.DeleteWebhook(s.Context(), access.OfOperator, e.Owner(), e.ID, pgtest.AuditEntry(e.AccountID, account.WebhookDeleted)); err != nil {
		s.Fatal(err)
	}
}

// intent records an intent, whose event is transfer.created.
func (s *service) intent(owner feed.Owner) *transfer.Intent {
	s.Helper()
	return pgtest.InsertTransfer(s.T, s.Store, s.Known, owner.AccountID, pgtest.TransferBody)
}

// request is one that a receiver got.
type request struct {
	id     string
	body   string
	header http.Header
}

// inbox is a receiver.
type inbox struct {
	url string

	mu   sync.Mutex
	got  []request
	next func(w http.ResponseWriter, r *http.Request)
}

// newInbox serves until the test ends; it answers with 204 until answer says something else.
func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{}
	server := httptest.NewServer(http.HandlerFunc(in.serve))
	t.Cleanup(server.Close)
	in.url = server.URL + "/hook"
	return in
}

func (in *inbox) serve(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, 32<<10)
	n := 0
	for read, err := 0, error(nil); err == nil && n < len(body); n += read {
		read, err = r.Body.Read(body[n:])
	}
	in.mu.Lock()
	in.got = append(in.got, request{id: r.Header.Get("Webhook-Id"), body: string(body[:n]), header: r.Header.Clone()})
	next := in.next
	in.mu.Unlock()
	if next == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	next(w, r)
}

func (in *inbox) answer(next func(http.ResponseWriter, *http.Request)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.next = next
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// requests are those that came so far.
func (in *inbox) requests() []request {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.got)
}

// ids are the webhook-ids of the requests so far, sorted.
func (in *inbox) ids() []string {
	var ids []string
	for _, r := range in.requests() {
		ids = append(ids, r.id)
	}
	slices.Sort(ids)
	return ids
}

// verify checks a request's signature with the Go library of Standard Webhooks.
func verify(tb testing.TB, secret string, r request) error {
	tb.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		tb.Fatal(err)
	}
	return hook.Verify([]byte(r.body), r.header)
}

// pgBytes is a bytea in Postgres' text format.
func pgBytes(b []byte) string { return fmt.Sprintf(`\x%x`, b) }
