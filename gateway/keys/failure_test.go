package keys_test

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// panicking is a log that panics when it is told of a failed look-up.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool { return true }

func (panicking) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "key look-up failed" {
		panic("no log")
	}
	return nil
}

// Nobody passes because a look-up panics, neither those who wait for it nor those who come later.
func TestVerifier_LookUpPanics(t *testing.T) {
	t.Parallel()
	const others = 32
	core := coretest.Start(t, nil)
	key := core.AddKey(network.Test)
	asked, release := make(chan struct{}), make(chan struct{})
	core.BeforeVerdict = sync.OnceFunc(func() {
		close(asked)
		<-release
	})
	core.VerifyDown.Store(true) // which is logged
	v := startBefore(t, []*url.URL{core.URL}, func(o *keys.Options) { o.Log = slog.New(panicking{slog.DiscardHandler}) })
	var passed, panicked atomic.Int64
	var asking sync.WaitGroup
	verify := func() {
		defer func() {
			if recover() != nil {
				panicked.Add(1)
			}
		}()
		if verdict, err := v.Verify(key.Hash()); err == nil {
			passed.Add(1)
			t.Errorf("passed with the verdict %v", verdict)
		}
	}
	asking.Go(verify)
	<-asked
	before := v.counted(t, "intents_gateway_key_verdicts_total")
	for range others {
		asking.Go(verify)
	}
	asynctest.Eventually(t, "the others ask as well", func() bool { return v.counted(t, "intents_gateway_key_verdicts_total") == before+others })
	close(release)
	asking.Wait()
	if panicked.Load() == 0 {
		t.Fatal("no look-up panicked")
	}
	core.VerifyDown.Store(false)
	v.mustAccept(t, key)
}

// What fails between gateway and core is logged with its cause, not once a request, and without keys.
func TestVerifier_LogsFailures(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	key := core.AddKey(network.Test)
	var log asynctest.Buffer
	v := startBefore(t, []*url.URL{core.URL}, func(o *keys.Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	core.VerifyDown.Store(true)
	for range 50 {
		if _, err := v.Verify(key.Hash()); !errors.Is(err, keys.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	core.FeedDown.Store(true)
	core.FilterDown.Store(true)
	asynctest.Eventually(t, "polls fail", func() bool { return v.counted(t, "intents_gateway_key_feed_failures_total") > 3 })
	text := log.String()
	for _, want := range []string{
		`"msg":"key look-up failed","error":"verify key: core answered 503 SERVICE_UNAVAILABLE","suppressed":0`,
		`"msg":"key change feed interrupted, cached verdicts are looked up again","error":"get key changes: `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in the log:\n%s", want, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 20 {
		t.Errorf("%d lines", lines)
	}
	hash := key.Hash()
	for _, secret := range []string{key.Reveal(), hex.EncodeToString(hash[:]), key.Start()} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	core.FeedDown.Store(false)
	asynctest.Eventually(t, "its end is logged", func() bool { return strings.Contains(log.String(), `"msg":"key change feed resumed"`) })
}
