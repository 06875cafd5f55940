// Package coretest is a stand-in for core in the gateway's tests: it speaks core's internal API, records every other
// request it receives, and fails on demand.
package coretest

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

// Secret is the one the stand-in demands.
const Secret telemetry.Secret = "a secret of at least thirty-two characters"

// promptPause is how long a poll that is not to wait takes, as at a core that others ask as well.
const promptPause = 10 * time.Millisecond

// Core is a running stand-in. It knows the chains eip155:1 (live) and eip155:11155111 (test).
type Core struct {
	URL *url.URL
	// Public answers what is not internal, after it was recorded. Set it before the first request.
	Public http.HandlerFunc
	// Documents are the bodies that the gateway gets, by path and query, when it asks for itself what every client gets
	// alike; 404 for all others.
	Documents Documents
	// Events are those of the accounts; Public is their handler only where a test says so.
	Events Events
	// BeforeVerdict, if set, runs in the midst of a look-up: after the key was read, before the answer leaves.
	BeforeVerdict func()
	// BeforeChanges, if set, runs in the midst of a poll of the feed that was to wait so long: after the changes were read,
	// before the answer leaves.
	BeforeChanges func(wait time.Duration)
	// LookUps counts look-ups, and PromptPolls the polls of the feed that were not to wait.
	LookUps, PromptPolls atomic.Int64
	// FeedDown, FilterDown, VerifyDown, ChainsDown and UsageDown make the parts of the internal API answer 503.
	FeedDown, FilterDown, VerifyDown, ChainsDown, UsageDown atomic.Bool
	// FeedWait, in nanoseconds, is how long the last poll of the feed of changed keys was to wait.
	FeedWait atomic.Int64
	// Filters counts the filters of keys given out; Filter is what they are instead of the keys there are, if set.
	Filters atomic.Int64
	Filter  *apikey.Filter
	// Batches counts the batches.
	Batches atomic.Int64
	// Draining makes the stand-in say that it is about to end, as a core does that was told to.
	Draining atomic.Bool
	// LostReplies is how many usage reports are still to be stored without an answer.
	LostReplies atomic.Int64

	server   *httptest.Server
	listener *tapped
	mu       sync.Mutex
	keys     map[string]wire.VerifiedKey
	changes  []string
	expired  int
	news     chan struct{}
	requests []Request
	raw      []string
	reports  []wire.UsageReport
}

// Start runs a stand-in until the test ends.
func Start(tb testing.TB, public http.HandlerFunc) *Core {
	tb.Helper()
	c := &Core{Public: public, keys: map[string]wire.VerifiedKey{}, news: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.PathVerifyKey, c.verifyKey)
	mux.HandleFunc("GET "+wire.PathKeyChanges, c.keyChanges)
	mux.HandleFunc("GET "+wire.PathKeyFilter, c.keyFilter)
	mux.HandleFunc("GET "+wire.PathEventAccounts, c.Events.accounts)
	mux.HandleFunc("POST "+wire.PathUsage, c.recordUsage)
	mux.HandleFunc("GET "+wire.PathReady, c.ready)
	batch := Batch(http.HandlerFunc(c.record))
	mux.HandleFunc("POST "+wire.PathBatch, func(w http.ResponseWriter, r *http.Request) {
		c.Batches.Add(1)
		batch(w, r)
	})
	mux.HandleFunc("/internal/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, wire.NotFound) })
	mux.HandleFunc("/", c.record)
	c.server = httptest.NewUnstartedServer(c.guard(mux))
	c.listener = &tapped{Listener: c.server.Listener}
	c.server.Listener = c.listener
	c.server.Config.ConnContext = withTap
	c.server.Start()
	tb.Cleanup(c.server.Close)
	c.URL, _ = url.Parse(c.server.URL)
	return c
}

// Options are those of a client of the cores at these URLs, for a busy machine.
func Options(urls ...*url.URL) upstream.Options {
	return upstream.Options{
		URLs: urls, Secret: Secret, Timeout: 10 * time.Second, MaxConns: 64, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	}
}

// Upstream is a client whose cores are probed until the test ends, which closes it.
func Upstream(tb testing.TB, o upstream.Options) *upstream.Client {
	tb.Helper()
	client := Unprobed(tb, o)
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	var probes sync.WaitGroup
	probes.Go(func() { client.Run(ctx) })
	tb.Cleanup(func() {
		stop()
		probes.Wait()
	})
	return client
}

// Unprobed is the same without probes: an ejected core stays ejected.
func Unprobed(tb testing.TB, o upstream.Options) *upstream.Client {
	tb.Helper()
	client := upstream.New(o)
	tb.Cleanup(client.Close)
	return client
}

func (c *Core) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.Draining.Load() {
			w.Header().Set("Connection", "close")
		}
		w.Header().Set(wire.HeaderCore, wire.CoreAnswered)
		if r.Header.Get(wire.HeaderGatewaySecret) != Secret.Reveal() {
			w.Header().Set(wire.HeaderCore, wire.CoreRefused)
			refuse(w, http.StatusUnauthorized, wire.NotAGateway)
			return
		}
		internal := strings.HasPrefix(r.URL.Path, "/internal/")
		own := !internal && r.Header.Get(wire.HeaderRequestID) == "" // the gateway's own request, not a client's
		if internal || own {
			take(r) // what is not recorded is not kept
		}
		switch {
		case own && r.URL.Path == "/v2/chains" && !c.Documents.has(r.RequestURI):
			c.chains(w, r)
		case own:
			c.Documents.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// AddKey makes a key that may be used, and tells the feed.
func (c *Core) AddKey(env network.Environment) apikey.Key {
	key := apikey.New(env)
	c.Put(key, wire.VerifiedKey{})
	return key
}

// Put makes the key usable as said; what is left empty is filled in. It tells the feed.
func (c *Core) Put(key apikey.Key, as wire.VerifiedKey) wire.VerifiedKey {
	if as.KeyID == "" {
		as.KeyID = uuid.NewString()
	}
	if as.LimitBucket == "" {
		as.LimitBucket = as.KeyID
	}
	if as.AccountID == "" {
		as.AccountID = uuid.NewString()
	}
	if as.Environment == "" {
		as.Environment = key.Environment()
	}
	if as.Limit == (wire.KeyLimit{}) {
		as.Limit = wire.KeyLimit{Requests: 50, PeriodSeconds: 60}
	}
	if as.AccountLimit == (wire.KeyLimit{}) {
		as.AccountLimit = wire.KeyLimit{Requests: 20 * as.Limit.Requests, PeriodSeconds: as.Limit.PeriodSeconds}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[text(key)] = as
	c.tell(key)
	return as
}

// Key is what the stand-in says of the key.
func (c *Core) Key(key apikey.Key) wire.VerifiedKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys[text(key)]
}

// Revoke makes the key unusable, as deleting or disabling it does, and tells the feed.
func (c *Core) Revoke(key apikey.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, text(key))
	c.tell(key)
}

// Forget makes the key unusable without a word on the feed.
func (c *Core) Forget(key apikey.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, text(key))
}

// ChangeOthers tells the feed of n changes of keys that nobody has.
func (c *Core) ChangeOthers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.changes = append(c.changes, strings.Repeat("0", 64))
	}
}

// ExpireCursors makes every cursor given out so far too old.
func (c *Core) ExpireCursors() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = len(c.changes) + 1
	c.changes = append(c.changes, "") // so that the next cursor is a new one
}

// CloseConnections breaks off every connection.
func (c *Core) CloseConnections() { c.server.CloseClientConnections() }

// Stop makes the stand-in unreachable.
func (c *Core) Stop() {
	_ = c.server.Listener.Close() // first, or who has lost a connection would have made another one by then
	c.server.CloseClientConnections()
}

func text(key apikey.Key) string {
	hash := key.Hash()
	return hex.EncodeToString(hash[:])
}

func (c *Core) tell(key apikey.Key) {
	c.changes = append(c.changes, text(key))
	close(c.news)
	c.news = make(chan struct{})
}
