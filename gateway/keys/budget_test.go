package keys_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// stranger is an address that no other test has.
func stranger() netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("2001:db8:%x:%x::1", rand.N(1<<16), rand.N(1<<16)))
}

func TestAFloodOfUnknownKeysStaysWithinTheBudget(t *testing.T) {
	t.Parallel()
	const budget, replicas, flood = 20, 3, 200
	core := coretest.Start(t, nil)
	var gateways []verifier
	for range replicas {
		gateways = append(gateways, start(t, core, budget))
	}
	core.BeforeVerdict = func() { <-time.After(5 * time.Millisecond) } // so that many are under way at once
	prober, began := stranger(), time.Now()
	var refused, overBudget, late atomic.Int64
	var asking sync.WaitGroup
	for i := range replicas * flood {
		asking.Go(func() {
			_, err := gateways[i%replicas].Verify(apikey.New(network.Test).Hash(), prober)
			switch {
			case errors.Is(err, keys.ErrRefused):
				refused.Add(1)
			case errors.As(err, new(keys.BudgetError)):
				overBudget.Add(1)
			case errors.Is(err, keys.ErrUnavailable): // the machine is too busy for its turn to come in time
				late.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	asking.Wait()
	most := budget + int64(time.Since(began)/(time.Minute/budget)) + 1
	got := core.LookUps.Load()
	t.Logf("%d look-ups, %d refused, %d over budget, %d too late", got, refused.Load(), overBudget.Load(), late.Load())
	if got > most || refused.Load() > got {
		t.Errorf("%d look-ups, the budget allows %d", got, most)
	}
}

// Keys that are tried from very many addresses, each within its budget, are looked up no faster than the bound for all. Keys
// in use are served on meanwhile, and new ones again when it is over.
func TestAFloodFromManyAddressesStaysWithinTheBound(t *testing.T) {
	t.Parallel()
	const perSecond, senders, each = 20, 16, 100
	core := coretest.Start(t, nil)
	g := startBefore(t, coretest.Set(t, core.URL), 1000, func(o *keys.Options) { o.UnknownPerSecond = perSecond })
	known := core.AddKey(network.Test).Hash()
	if _, err := g.Verify(known, stranger()); err != nil {
		t.Fatal(err)
	}
	before, began := core.LookUps.Load(), time.Now()
	var crowdedOut atomic.Int64
	var flood sync.WaitGroup
	for range senders {
		flood.Go(func() {
			for range each {
				switch _, err := g.Verify(apikey.New(network.Test).Hash(), stranger()); {
				case errors.Is(err, keys.ErrUnavailable):
					crowdedOut.Add(1)
				case !errors.Is(err, keys.ErrRefused):
					t.Error(err)
				}
				if _, err := g.Verify(known, stranger()); err != nil {
					t.Errorf("a key in use: %v", err)
				}
			}
		})
	}
	flood.Wait()
	took := time.Since(began)
	got, most := core.LookUps.Load()-before, perSecond+senders+int64(took.Seconds()*perSecond)
	t.Logf("%d keys in %s: %d look-ups, %d refused without", senders*each, took, got, crowdedOut.Load())
	if got > most || crowdedOut.Load() == 0 {
		t.Errorf("%d look-ups, the bound allows %d", got, most)
	}
	fresh := core.AddKey(network.Test).Hash()
	eventually(t, "new keys are served again", func() bool { _, err := g.Verify(fresh, stranger()); return err == nil })
}

// Good keys spend nothing of the budget, also where more come at once than it has.
func TestManyGoodKeysOfOneAddressPass(t *testing.T) {
	t.Parallel()
	const budget, replicas, count = 4, 3, 24
	core := coretest.Start(t, nil)
	var good []apikey.Key
	for range count {
		good = append(good, core.AddKey(network.Test))
	}
	var gateways []verifier
	for range replicas {
		gateways = append(gateways, start(t, core, budget))
	}
	office := stranger()
	var asking sync.WaitGroup
	for i, key := range good {
		asking.Go(func() {
			if _, err := gateways[i%replicas].Verify(key.Hash(), office); err != nil {
				t.Errorf("key %d: %v", i, err)
			}
		})
	}
	asking.Wait()
	core.VerifyDown.Store(true)
	for range 3 * budget {
		if _, err := gateways[0].Verify(apikey.New(network.Test).Hash(), office); !errors.Is(err, keys.ErrUnavailable) {
			t.Fatalf("while core does not answer, which spends nothing either: %v", err)
		}
	}
	core.VerifyDown.Store(false)
	for n := range budget {
		if _, err := gateways[n%replicas].Verify(apikey.New(network.Test).Hash(), office); !errors.Is(err, keys.ErrRefused) {
			t.Errorf("unknown key %d: %v", n, err)
		}
	}
	if _, err := gateways[1].Verify(apikey.New(network.Test).Hash(), office); !errors.As(err, new(keys.BudgetError)) {
		t.Errorf("one unknown key more: %v", err)
	}
}
