package keys_test

import (
	"errors"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

func TestFeed_ChangeOnEveryReplica(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	replicas := []verifier{start(t, core), start(t, core), start(t, core)}
	key := core.AddKey(network.Test)
	for _, v := range replicas {
		v.mustAccept(t, key)
	}
	core.Revoke(key)
	ended := time.Now()
	for _, v := range replicas {
		v.mustEnd(t, key, ended)
	}
	core.Put(key, wire.VerifiedKey{})
	for _, v := range replicas {
		asynctest.Eventually(t, "the enabled key is accepted", func() bool { return !v.refused(key) })
	}
}

// mustEnd waits until the key is refused. However busy the machine, no request that begins a second after the key's end
// may be let in.
func (v verifier) mustEnd(t *testing.T, key apikey.Key, ended time.Time) {
	t.Helper()
	asynctest.Eventually(t, "the key is refused", func() bool {
		began := time.Now()
		_, err := v.Verify(key.Hash())
		if late := began.Sub(ended); err == nil && late >= keys.MaxStaleness {
			t.Errorf("accepted %s after its end", late)
		}
		return errors.Is(err, keys.ErrRefused) || errors.Is(err, keys.ErrUnknown)
	})
}

func TestVerifier_FeedDown(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core)
	key, other := core.AddKey(network.Test), core.AddKey(network.Test)
	v.mustAccept(t, key)
	v.mustAccept(t, other)

	core.FeedDown.Store(true)
	core.Forget(key) // the feed would not tell even if it were there
	v.mustEnd(t, key, time.Now())
	v.mustAccept(t, other)

	core.VerifyDown.Store(true)
	asynctest.Eventually(t, "nobody gets in on an old verdict", func() bool {
		_, err := v.Verify(other.Hash())
		return errors.Is(err, keys.ErrUnavailable)
	})

	core.VerifyDown.Store(false)
	core.FeedDown.Store(false)
	asynctest.Eventually(t, "the cached verdict counts again", func() bool {
		before := core.LookUps.Load()
		_, err := v.Verify(other.Hash())
		return err == nil && core.LookUps.Load() == before
	})
}

func TestVerifier_ChangeDuringLookUp(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core)
	key := core.AddKey(network.Test)
	v.awaitChanges(t, 1)
	reading, release := make(chan struct{}), make(chan struct{})
	var later atomic.Bool
	core.BeforeVerdict = func() {
		if !later.Swap(true) {
			close(reading)
			<-release
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = v.Verify(key.Hash()) // as it happens the old answer, which was right when it was asked for
	}()
	<-reading
	core.Revoke(key)
	v.awaitChanges(t, 2)
	if !v.refused(key) {
		t.Error("a request after the change shared a look-up from before it")
	}
	close(release)
	<-done
	if !v.refused(key) {
		t.Error("the outdated answer was kept")
	}
}

// A core that is far away is asked to wait less, so that verdicts go on to count between two of its answers.
func TestFeed_DistantCore(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	distant := core.Front(t)
	v := startBefore(t, []*url.URL{distant.URL})
	asked := func() time.Duration { return time.Duration(core.FeedWait.Load()) }
	asynctest.Eventually(t, "a near core is asked to wait for 250 ms", func() bool { return asked() == 250*time.Millisecond })
	distant.Late.Store(int64(300 * time.Millisecond))
	// Two polls are to fit into a second, with 100 ms to spare each.
	asynctest.Eventually(t, "a distant core is asked to wait less", func() bool { return asked() <= 100*time.Millisecond })
	key := core.AddKey(network.Test)
	asynctest.Eventually(t, "the feed goes on", func() bool { return v.counted(t, "intents_gateway_key_changes_total") == 1 })
	v.mustAccept(t, key)
	distant.Late.Store(0)
	asynctest.Eventually(t, "a core that is near again is asked to wait for 250 ms", func() bool { return asked() == 250*time.Millisecond })
}

func TestFeed_ExpiredCursor(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core)
	key := core.AddKey(network.Test)
	v.awaitChanges(t, 1)
	v.mustAccept(t, key)
	core.Forget(key)
	core.ExpireCursors()
	asynctest.Eventually(t, "the key is refused", func() bool { return v.refused(key) })
	asynctest.Eventually(t, "the purge is counted", func() bool { return v.counted(t, "intents_gateway_key_feed_purges_total") == 1 })
}

func TestFeed_TooManyChanges(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core)
	key := core.AddKey(network.Test)
	v.awaitChanges(t, 1)
	v.mustAccept(t, key)
	core.Forget(key)
	core.ChangeOthers(260_000) // 64 characters each, more than 16 MiB in all
	asynctest.Eventually(t, "the feed goes on", func() bool { return v.counted(t, "intents_gateway_key_feed_purges_total") == 1 })
	asynctest.Eventually(t, "the key is refused", func() bool { return v.refused(key) })
	v.awaitFeed(t, core)
}

// awaitFeed waits until the feed tells of a new change. One that comes before the feed has a cursor again is never told.
func (v verifier) awaitFeed(t *testing.T, core *coretest.Core) {
	t.Helper()
	before := v.counted(t, "intents_gateway_key_changes_total")
	asynctest.Eventually(t, "the feed tells of a change", func() bool {
		core.AddKey(network.Test)
		return v.counted(t, "intents_gateway_key_changes_total") > before
	})
}
