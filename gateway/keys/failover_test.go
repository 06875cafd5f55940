package keys_test

import (
	"context"
	"net/url"
	"sync"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// Whichever core stops answering, a key that is revoked then is refused in time, and nobody else is.
func TestVerifier_RevokedWhileCoreFails(t *testing.T) {
	t.Parallel()
	for fault, inflict := range map[string]func(*coretest.Front){
		"stopped": func(f *coretest.Front) { f.Hangs.Store(true) },
		"gone":    func(f *coretest.Front) { f.Stop() },
	} {
		for failing := range 2 { // of which one has the feed
			t.Run(fault, func(t *testing.T) {
				t.Parallel()
				core := coretest.Start(t, nil)
				fronts := []*coretest.Front{core.Front(t), core.Front(t)}
				v := startBefore(t, []*url.URL{fronts[0].URL, fronts[1].URL}, func(o *keys.Options) {
					o.LookUpTimeout = keys.MaxStaleness
				})
				stays, goes := core.AddKey(network.Test), core.AddKey(network.Test)
				if _, err := v.Verify(goes.Hash()); err != nil {
					t.Fatal(err)
				}
				if _, err := v.Verify(stays.Hash()); err != nil {
					t.Fatal(err)
				}
				ctx, done := context.WithCancel(t.Context())
				defer done()
				var asking sync.WaitGroup
				asking.Go(func() {
					ticker := time.NewTicker(time.Millisecond)
					defer ticker.Stop()
					for ctx.Err() == nil {
						if _, err := v.Verify(stays.Hash()); err != nil {
							t.Errorf("a good key: %v", err)
							return
						}
						<-ticker.C
					}
				})
				inflict(fronts[failing])
				core.Revoke(goes)
				revoked := time.Now()
				asynctest.Eventually(t, "the key is refused", func() bool {
					return v.refused(goes)
				})
				took := time.Since(revoked)
				t.Logf("refused %s after it was revoked", took)
				if took > 5*keys.MaxStaleness { // Trust is the promise; a busy machine has five times as long
					t.Errorf("refused only %s after it was revoked", took)
				}
				<-time.After(time.Until(revoked.Add(2 * keys.MaxStaleness))) // every proof from before is worth nothing by then
				done()
				asking.Wait()
			})
		}
	}
}
