package keys_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// flood tries unknown keys from very many addresses until what it returns is called, which tells how many there were.
func (v verifier) flood(t *testing.T) (stop func() int64) {
	t.Helper()
	var tried atomic.Int64
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
				if _, err := v.Verify(apikey.New(network.Test).Hash(), stranger()); err == nil {
					t.Error("an unknown key is let in")
				}
				tried.Add(1)
			}
		})
	}
	return func() int64 { close(over); senders.Wait(); return tried.Load() }
}

// Keys that a gateway has never seen, as after it was started or when their verdicts have expired, are none of the flood's
// business.
func TestKeysThatExistPassAFloodOfOthers(t *testing.T) {
	t.Parallel()
	const perSecond, count = 20, 200
	core := coretest.Start(t, nil)
	var existing []apikey.Key
	for range count {
		existing = append(existing, core.AddKey(network.Test))
	}
	v := startBefore(t, coretest.Set(t, core.URL), 1000, func(o *keys.Options) { o.UnknownPerSecond = perSecond })
	eventually(t, "the filter is there", func() bool { return v.Expects(existing[0].Hash()) })
	stop := v.flood(t)
	eventually(t, "unknown keys are crowded out", func() bool {
		_, err := v.Verify(apikey.New(network.Test).Hash(), stranger())
		return errors.Is(err, keys.ErrUnavailable)
	})
	for n, key := range existing {
		if _, err := v.Verify(key.Hash(), stranger()); err != nil {
			t.Errorf("key %d: %v", n, err)
		}
	}
	made := core.AddKey(network.Test) // which the feed tells
	eventually(t, "a new key is expected", func() bool { return v.Expects(made.Hash()) })
	if _, err := v.Verify(made.Hash(), stranger()); err != nil {
		t.Errorf("a key made meanwhile: %v", err)
	}
	t.Logf("%d keys passed a flood of %d", count+1, stop())
}

// Whoever has found many keys that the filter has by mistake has them looked up no faster than others.
func TestMistakesOfTheFilterAreBounded(t *testing.T) {
	t.Parallel()
	const perSecond = 20
	core := coretest.Start(t, nil)
	core.Filter = apikey.NewFilter(1) // too small by far, so that it has nearly every key
	for range 1000 {
		core.Filter.Add(apikey.New(network.Test).Hash())
	}
	v := startBefore(t, coretest.Set(t, core.URL), 1000, func(o *keys.Options) { o.UnknownPerSecond = perSecond })
	eventually(t, "the filter is there", func() bool { return v.Expects(apikey.New(network.Test).Hash()) })
	before, began := core.LookUps.Load(), time.Now()
	stop := v.flood(t)
	<-time.After(time.Second)
	tried, took := stop(), time.Since(began)
	const bounds = 2 // the filter's mistakes and, of a few, the others
	got, most := core.LookUps.Load()-before, bounds*(perSecond+4+int64(took.Seconds()*perSecond))
	t.Logf("%d keys in %s: %d look-ups", tried, took, got)
	if got > most {
		t.Errorf("%d look-ups, the bounds allow %d", got, most)
	}
}

func TestFilterIsGotAgain(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	core.FilterDown.Store(true)
	key := core.AddKey(network.Test)
	v := start(t, core, 60)
	v.mustAccept(t, key) // without a filter all keys are the same
	if v.Expects(key.Hash()) {
		t.Error("a filter that core does not give is there")
	}
	core.FilterDown.Store(false)
	core.ExpireCursors() // so that the feed begins anew
	eventually(t, "the filter is there", func() bool { return v.Expects(key.Hash()) })
	got := core.Filters.Load()
	core.ExpireCursors()
	eventually(t, "another one is got, since the feed may have left keys out", func() bool { return core.Filters.Load() > got })
	made := core.AddKey(network.Test)
	eventually(t, "a new key is expected", func() bool { return v.Expects(made.Hash()) })
}
