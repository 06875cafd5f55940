package limit_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/freeport"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/tokenbucket"
)

// ruleChanges are rules of a bucket that is emptied, the next ones, and how long a request waits under these.
var ruleChanges = map[string]struct {
	old, next tokenbucket.Rule
	wait      time.Duration
}{
	"raised":         {tokenbucket.Per(3, time.Hour), tokenbucket.Per(1000, time.Minute), 60 * time.Millisecond},
	"lowered":        {tokenbucket.Per(200, time.Minute), tokenbucket.Per(3, time.Hour), 0}, // a minute of the hour is lacking
	"shorter period": {tokenbucket.Per(50, time.Hour), tokenbucket.Per(50, time.Minute), 1200 * time.Millisecond},
}

// A changed limit of a key or of its account applies from the next request on: what the bucket lacks by the old one makes nobody wait
// longer than for one token of the new one, also where a refusal is repeated from memory.
func TestLimiter_RuleChanges(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *embedded.Redis) {
		t.Helper()
		changesRules(t, newLimiter(t, r.URL, generous, limit.Closed))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		changesRules(t, onCluster(t, topologytest.StartCluster(t, 3, 0, topologytest.Security{}), 1, generous, limit.Closed)[0])
	})
	t.Run("without redis", func(t *testing.T) {
		t.Parallel()
		changesRules(t, newLimiter(t, "redis://"+freeport.Address(t)+"/0", 50*time.Millisecond, limit.Local))
	})
}

func changesRules(t *testing.T, l limiter) {
	t.Helper()
	for name, change := range ruleChanges {
		for _, ofAccount := range []bool{false, true} {
			key, account := tokenbucket.Bucket{Name: "key:" + uuid.NewString()}, tokenbucket.Bucket{Name: "account:live:" + uuid.NewString()}
			take := func(rule tokenbucket.Rule, refusals *limit.Refusals) limit.Decision {
				key.Rule, account.Rule = rule, plenty
				if ofAccount {
					key.Rule, account.Rule = plenty, rule
				}
				d, err := l.Limiter.Take(key, account, 1, refusals, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			var old, next limit.Refusals // a key's verdict has its own
			for n := range change.old.Burst {
				if d := take(change.old, &old); !d.Allowed {
					t.Fatalf("%s: request %d is refused: %+v", name, n, d)
				}
			}
			if emission, _ := change.old.Intervals(); emission > time.Minute && take(change.old, &old).Allowed {
				t.Fatalf("%s: one more request passes", name)
			}
			d := take(change.next, &next)
			if got := d.Wait(); got > change.wait+time.Second || d.Allowed != (change.wait == 0) {
				t.Errorf("%s, of the account %t: %+v waits %s, want %s", name, ofAccount, d, got, change.wait)
			}
			asynctest.Eventually(t, name+": a request passes under the next rule", func() bool { return take(change.next, &next).Allowed })
		}
	}
}
