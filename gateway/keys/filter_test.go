package keys_test

import (
	"errors"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// flood presents unknown keys until stop is called, which tells how many there were. None may get another error than these,
// but where a poll has failed, as on a machine that stands still.
func (v verifier) flood(t *testing.T, wants ...error) (stop func() int64) {
	t.Helper()
	var presented atomic.Int64
	var senders sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		senders.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				_, err := v.Verify(apikey.New(network.Test).Hash())
				if !v.stalled(t, err) && !slices.ContainsFunc(wants, func(want error) bool { return errors.Is(err, want) }) {
					t.Errorf("an unknown key: %v, want one of %v", err, wants)
					return
				}
				presented.Add(1)
			}
		})
	}
	return func() int64 { close(over); senders.Wait(); return presented.Load() }
}

// stalled reports whether the error comes of polls that failed because the machine stood still.
func (v verifier) stalled(t *testing.T, err error) bool {
	t.Helper()
	return errors.Is(err, keys.ErrUnavailable) && v.counted(t, "intents_gateway_key_feed_failures_total") > 0
}

// mustPass demands that the key is accepted, at once unless the machine stands still.
func (v verifier) mustPass(t *testing.T, key apikey.Key) {
	t.Helper()
	for {
		_, err := v.Verify(key.Hash())
		if v.stalled(t, err) {
			continue
		}
		if err != nil {
			t.Errorf("a usable key: %v", err)
		}
		return
	}
}

// startWithHeldReading starts a verifier whose filter is complete. Core answers its next prompt reading, which closes reading,
// only once release is closed.
func startWithHeldReading(t *testing.T) (core *coretest.Core, v verifier, reading, release chan struct{}) {
	t.Helper()
	core = coretest.Start(t, nil)
	reading, release = make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	core.BeforeChanges = func(wait time.Duration) {
		if wait == 0 && held.CompareAndSwap(true, false) {
			close(reading)
			<-release
		}
	}
	existing := core.AddKey(network.Test)
	v = start(t, core)
	v.awaitFilter(t, existing)
	asynctest.Eventually(t, "the feed waits again", func() bool { return core.FeedWait.Load() > 0 })
	held.Store(true)
	return core, v, reading, release
}

// However many unknown keys are presented at once, core reads its feed once for those that wait and once for those that
// come meanwhile, and looks nothing up.
func TestVerifier_SharedPoll(t *testing.T) {
	t.Parallel()
	const guesses = 500
	core, v, reading, release := startWithHeldReading(t)
	before := core.PromptPolls.Load()
	var asking sync.WaitGroup
	guess := func() {
		asking.Go(func() {
			if _, err := v.Verify(apikey.New(network.Test).Hash()); !errors.Is(err, keys.ErrUnknown) {
				t.Errorf("an unknown key: %v", err)
			}
		})
	}
	guess()
	<-reading
	for range guesses {
		guess()
	}
	asynctest.Eventually(t, "all of them wait", func() bool { return v.Waiting() == guesses+1 })
	close(release)
	asking.Wait()
	if got := core.PromptPolls.Load() - before; got != 2 {
		t.Errorf("core read its feed %d times for %d unknown keys, want 2", got, guesses+1)
	}
	if got := core.LookUps.Load(); got != 0 {
		t.Errorf("core looked up %d of %d unknown keys", got, guesses+1)
	}
	if failed := v.counted(t, "intents_gateway_key_feed_failures_total"); failed != 0 {
		t.Errorf("%v polls that were interrupted count as failed", failed)
	}
}

// A key that is made after a reading has begun waits for the next one.
func TestVerifier_KeyCreatedDuringPoll(t *testing.T) {
	t.Parallel()
	core, v, reading, release := startWithHeldReading(t)
	var asking sync.WaitGroup
	asking.Go(func() {
		if _, err := v.Verify(apikey.New(network.Test).Hash()); !errors.Is(err, keys.ErrUnknown) {
			t.Errorf("an unknown key: %v", err)
		}
	})
	<-reading
	made := core.AddKey(network.Test) // which the poll in flight does not report
	asking.Go(func() { v.mustAccept(t, made) })
	asynctest.Eventually(t, "both wait", func() bool { return v.Waiting() == 2 })
	close(release)
	asking.Wait()
}

// Keys that were just made pass on every gateway, and so do keys that a gateway has not seen, whatever else is presented.
func TestVerifier_NewKeyDuringFlood(t *testing.T) {
	t.Parallel()
	const count = 50
	core := coretest.Start(t, nil)
	var existing []apikey.Key
	for range count {
		existing = append(existing, core.AddKey(network.Test))
	}
	gateways := []verifier{start(t, core), start(t, core)}
	var stops []func() int64
	for _, v := range gateways {
		v.awaitFilter(t, existing[0])
		stops = append(stops, v.flood(t, keys.ErrUnknown))
	}
	before := core.LookUps.Load()
	for n, key := range existing {
		gateways[n%2].mustPass(t, key)
		made := core.AddKey(network.Test)
		gateways[0].mustPass(t, made)
		gateways[1].mustPass(t, made)
	}
	guesses := stops[0]() + stops[1]()
	t.Logf("%d keys passed a flood of %d", 2*count, guesses)
	// Each gateway looks a new key up, and again where the feed tells of it only then; the filter is wrong once in 10,000.
	if got, most := core.LookUps.Load()-before, count+4*count+guesses/1000+3; got > most {
		t.Errorf("%d look-ups, at most %d are due", got, most)
	}
}

// Without an answer of core nobody is told that a key does not exist.
func TestVerifier_UnknownKeyWithoutFeed(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	existing := core.AddKey(network.Test)
	v := start(t, core)
	v.awaitFilter(t, existing)
	core.FeedDown.Store(true)
	for range 20 {
		if _, err := v.Verify(apikey.New(network.Test).Hash()); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("an unknown key: %v", err)
		}
	}
	v.mustAccept(t, existing)
	core.FeedDown.Store(false)
	asynctest.Eventually(t, "it is refused again", func() bool {
		_, err := v.Verify(apikey.New(network.Test).Hash())
		return errors.Is(err, keys.ErrUnknown)
	})
}

// A filter that may lack keys refuses none, and a flood of unknown keys leaves look-ups to those that it has.
func TestVerifier_IncompleteFilter(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	existing := core.AddKey(network.Test)
	v := startBefore(t, []*url.URL{core.URL}, func(o *keys.Options) { o.LookUps = 4 })
	v.awaitFilter(t, existing)
	core.FilterDown.Store(true)
	core.ExpireCursors()
	asynctest.Eventually(t, "unknown keys are looked up", func() bool {
		_, err := v.Verify(apikey.New(network.Test).Hash())
		return errors.Is(err, keys.ErrRefused)
	})
	made := core.AddKey(network.Test)
	v.mustAccept(t, made)

	release := make(chan struct{})
	var held atomic.Int64
	core.BeforeVerdict = func() {
		held.Add(1)
		<-release
	}
	var guesses sync.WaitGroup
	for range 20 {
		guesses.Go(func() { _, _ = v.Verify(apikey.New(network.Test).Hash()) })
	}
	asynctest.Eventually(t, "a guess is looked up", func() bool { return held.Load() == 1 })
	guesses.Go(func() { v.mustAccept(t, existing) })
	asynctest.Eventually(t, "the existing key is looked up beside it", func() bool { return held.Load() == 2 })
	close(release)
	guesses.Wait()

	core.FilterDown.Store(false)
	asynctest.Eventually(t, "the filter is complete again", func() bool {
		_, err := v.Verify(apikey.New(network.Test).Hash())
		return errors.Is(err, keys.ErrUnknown)
	})
}

// Whatever happens to the filter meanwhile, a key that exists is never refused.
func TestVerifier_FilterReload(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	existing := core.AddKey(network.Test)
	v := start(t, core)
	v.awaitFilter(t, existing)
	stop := v.flood(t, keys.ErrUnknown, keys.ErrRefused)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 25 {
				v.mustPass(t, core.AddKey(network.Test))
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); work.Wait() }()
	for reloads := core.Filters.Load(); ; reloads = core.Filters.Load() {
		core.ExpireCursors()
		asynctest.Eventually(t, "the filter is loaded again", func() bool { return core.Filters.Load() > reloads })
		select {
		case <-done:
			t.Logf("%d filters, %d guesses", core.Filters.Load(), stop())
			return
		default:
		}
	}
}

// The feed goes on while what has changed since core made the filter is read.
func TestVerifier_FilterBehind(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	core.BeforeChanges = func(wait time.Duration) {
		if wait == 0 {
			<-held
		}
	}
	existing := core.AddKey(network.Test)
	v := start(t, core)
	asynctest.Eventually(t, "the changes are read", func() bool { return core.PromptPolls.Load() > 0 })
	core.AddKey(network.Test)
	v.awaitChanges(t, 1)
	release()
	v.awaitFilter(t, existing)
}

// A key that the filter has by mistake is looked up once.
func TestVerifier_FalsePositive(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	core.Filter = apikey.NewFilter(1) // too small by far, so that it has nearly every key
	for range 1000 {
		core.Filter.Add(apikey.New(network.Test).Hash())
	}
	v := start(t, core)
	guess := apikey.New(network.Test)
	v.awaitFilter(t, guess)
	for range 100 {
		if _, err := v.Verify(guess.Hash()); !errors.Is(err, keys.ErrRefused) {
			t.Fatalf("an unknown key: %v", err)
		}
	}
	if got := core.LookUps.Load(); got != 1 {
		t.Errorf("%d look-ups of one key", got)
	}
}

func TestVerifier_WithoutFilter(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	core.FilterDown.Store(true)
	key := core.AddKey(network.Test)
	v := start(t, core)
	v.mustAccept(t, key)
	if _, err := v.Verify(apikey.New(network.Test).Hash()); !errors.Is(err, keys.ErrRefused) {
		t.Errorf("an unknown key: %v", err)
	}
	if v.InFilter(key.Hash()) {
		t.Error("a filter that core does not give is there")
	}
	core.FilterDown.Store(false)
	v.awaitFilter(t, key)
}
