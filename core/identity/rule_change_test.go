package identity_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/topology"
)

// A changed limit applies from the next try on: what a bucket lacks by the old rule makes nobody wait longer than for one token of the new
// one, in Redis, on a Cluster and in memory.
func TestLimits_RuleChanges(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		changesLimits(t, store, topology.Single, startRedis(t).URL)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		changesLimits(t, store, topology.Cluster, topologytest.StartCluster(t, 3, 0, topologytest.Security{}).URL)
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		changesRequestLimits(t, newServiceOn(t, store))
	})
}

// changesLimits changes each kind of limit that cores keep in the Redis at url: those of the settings, by a core that starts with others,
// and those of requests with a key.
func changesLimits(t *testing.T, store *rooms.Rooms, mode topology.Mode, url string) {
	t.Helper()
	const raisedLimit = 100_000
	coreOf := func(limit int) *identity.Service {
		return newServiceOn(t, store, countingOn(t, mode, url, generous), func(c *identity.Config) {
			c.Limits.SignInPerIP, c.Limits.KeysPerIP, c.Limits.KeysPerAccount = limit, limit, limit
		})
	}
	before, raised := coreOf(3), coreOf(raisedLimit)
	for _, ip := range []string{"203.0.113.7", "203.0.113.8", "203.0.113.9", "2001:db8::1"} { // on any of the masters
		nonce := func(core *identity.Service) time.Duration {
			return waits(t, call(core.Persons.WalletNonce(t.Context(), identity.Client{IP: ip})))
		}
		usesUp(t, "sign-ins of "+ip, 3, func() time.Duration { return nonce(before) })
		passesAfter(t, "sign-ins of "+ip, time.Minute/raisedLimit, func() time.Duration { return nonce(raised) })
	}
	owner := newOwner(t, store)
	as := principalOf(t, owner, before)
	key := func(core *identity.Service) time.Duration {
		return waits(t, call2(core.Keys.Create(t.Context(), identity.Client{IP: "203.0.113.1"}, as, account.KeyRequest{Name: "ci"})))
	}
	usesUp(t, "keys", 3, func() time.Duration { return key(before) })
	passesAfter(t, "keys", time.Hour/raisedLimit, func() time.Duration { return key(raised) })
	changesRequestLimits(t, raised)
}

// changesRequestLimits changes the limit of a key, and that of its account.
func changesRequestLimits(t *testing.T, core *identity.Service) {
	t.Helper()
	of := func(n int, period time.Duration) account.Limit { return account.Limit{Requests: n, Period: period} }
	plenty := of(1_000_000, time.Minute)
	for name, c := range map[string]struct {
		old, next account.Limit
		wait      time.Duration
	}{
		"raised":         {of(3, time.Hour), of(1000, time.Minute), 60 * time.Millisecond},
		"shorter period": {of(50, time.Hour), of(50, time.Minute), 1200 * time.Millisecond},
	} {
		for _, ofAccount := range []bool{false, true} {
			owner := &account.Account{ID: uuid.New(), Limit: plenty}
			key := &account.Key{AccountID: owner.ID, Environment: network.Live, LimitBucket: uuid.New(), Limit: plenty}
			changed := &key.Limit
			if ofAccount {
				name, changed = name+" of the account", &owner.Limit
			}
			take := func() time.Duration { return waits(t, core.Keys.TakeRequest(t.Context(), owner, key)) }
			*changed = c.old
			usesUp(t, name, c.old.Requests, take)
			*changed = c.next
			shown := core.Keys.RateLimits(t.Context(), key)[0]
			if ofAccount {
				shown = core.Keys.AccountRateLimit(t.Context(), owner, network.Live)
			}
			if shown.Known && (shown.ResetAfter > c.next.Period || shown.Remaining > 1) {
				t.Errorf("%s: the console shows %+v of %+v", name, shown, c.next)
			}
			passesAfter(t, name, c.wait, take)
		}
	}
}

// usesUp takes all tokens of a bucket, and one more, which is refused.
func usesUp(t *testing.T, what string, tokens int, take func() time.Duration) {
	t.Helper()
	for n := range tokens {
		if wait := take(); wait > 0 {
			t.Fatalf("%s: try %d of %d waits %s", what, n, tokens, wait)
		}
	}
	if take() == 0 {
		t.Fatalf("%s: one more than %d passes", what, tokens)
	}
}

// passesAfter checks that a try waits for one token at most, and that a later one passes.
func passesAfter(t *testing.T, what string, token time.Duration, take func() time.Duration) {
	t.Helper()
	if wait := take(); wait > token+time.Millisecond {
		t.Errorf("%s: a try under the next rule waits %s, want %s at most", what, wait, token)
		return
	}
	asynctest.Eventually(t, what+": a try passes under the next rule", func() bool { return take() == 0 })
}
