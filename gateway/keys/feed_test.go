package keys_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

func TestChangesCountOnEveryReplicaWithinASecond(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	replicas := []verifier{start(t, core, 60), start(t, core, 60), start(t, core, 60)}
	key := core.AddKey(network.Test)
	for _, v := range replicas {
		v.mustAccept(t, key)
	}
	core.Revoke(key)
	for _, v := range replicas {
		if took := eventually(t, "the revoked key is refused", func() bool { return v.refused(key) }); took > time.Second {
			t.Errorf("refused after %s", took)
		}
	}
	core.Put(key, wire.VerifiedKey{})
	for _, v := range replicas {
		took := eventually(t, "the enabled key is accepted", func() bool { return !v.refused(key) })
		if took > time.Second {
			t.Errorf("accepted after %s", took)
		}
	}
}

func TestWithoutFeedVerdictsAreAskedForAgain(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core, 60)
	key, other := core.AddKey(network.Test), core.AddKey(network.Test)
	v.mustAccept(t, key)
	v.mustAccept(t, other)

	core.FeedDown.Store(true)
	core.Forget(key) // the feed would not tell even if it were there
	took := eventually(t, "the key is refused", func() bool { return v.refused(key) })
	t.Logf("refused %s after it ended, without the feed", took)
	if took > 1200*time.Millisecond { // a poll may have begun just before the feed went
		t.Errorf("refused after %s", took)
	}
	v.mustAccept(t, other)

	core.VerifyDown.Store(true)
	eventually(t, "nobody gets in on an old verdict", func() bool {
		_, err := v.Verify(other.Hash(), someone)
		return errors.Is(err, keys.ErrUnavailable)
	})

	core.VerifyDown.Store(false)
	core.FeedDown.Store(false)
	eventually(t, "the cached verdict counts again", func() bool {
		before := core.LookUps.Load()
		_, err := v.Verify(other.Hash(), someone)
		return err == nil && core.LookUps.Load() == before
	})
}

func TestAnAnswerOlderThanAChangeIsNotKept(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core, 60)
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
		_, _ = v.Verify(key.Hash(), someone) // as it happens the old answer, which was right when it was asked for
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

func TestExpiredCursorDropsEverything(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	v := start(t, core, 60)
	key := core.AddKey(network.Test)
	v.awaitChanges(t, 1)
	v.mustAccept(t, key)
	core.Forget(key)
	core.ExpireCursors()
	eventually(t, "the key is refused", func() bool { return v.refused(key) })
	if got := v.counted(t, "gateway_key_feed_purges_total"); got != 1 {
		t.Errorf("%v purges", got)
	}
}
