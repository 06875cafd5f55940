package tokenbucket_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/tokenbucket"
)

// Buckets of which nobody takes are gone after two generations.
func TestCall_DropsGenerations(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		c := start(t)
		c.take(fiftyAMinute, names()...)
		for range 2 {
			c.pass(64 * time.Second)
			c.take(fiftyAMinute, "another bucket")
		}
		const others = 2 // the other bucket and began
		current, previous := c.client.HLen(t.Context(), tokenbucket.Current).Val(), c.client.HLen(t.Context(), tokenbucket.Previous).Val()
		if current != others || previous != others {
			t.Errorf("%d and %d fields are left", current, previous)
		}
	})
}

// Full tells of buckets in either hash and in keys of their own, and takes nothing.
func TestFull(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		c := start(t)
		seconds := func(d time.Duration) float64 { return float64(c.now.Unix()-tokenbucket.Epoch) + d.Seconds() }
		all := []string{"key:" + uuid.NewString(), "n", "key:" + uuid.NewString(), "nobody's", "junk"}
		want := []float64{0, 0, 0, 0, math.NaN()}
		c.take(tokenbucket.Rule{Rate: 1, Burst: 3, Period: time.Hour}, all[2], all[2])
		want[2] = seconds(2 * time.Hour)
		c.pass(64 * time.Second)
		c.take(fiftyAMinute, all[0])
		want[0] = seconds(1200 * time.Millisecond)
		c.pass(64 * time.Second)
		c.take(fiftyAMinute, all[1], all[1])
		want[1] = seconds(2400 * time.Millisecond)
		if err := c.client.Set(t.Context(), tokenbucket.Prefix+all[4], "junk", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := tokenbucket.Full(t.Context(), c.client, "", all...)
			if err != nil {
				t.Fatal(err)
			}
			equal := cmp.Comparer(func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-4 })
			if diff := cmp.Diff(want, got, equal); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
}

// Take tells how long to wait.
func TestTake(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), Protocol: 2})
	defer client.Close()
	rule := tokenbucket.Rule{Rate: 4, Burst: 2, Period: time.Hour}
	for n, want := range []time.Duration{0, 0, 15 * time.Minute} {
		wait, err := tokenbucket.Take(t.Context(), client, tokenbucket.Bucket{Name: "a name", Rule: rule}, tokenbucket.Bucket{})
		if err != nil || (wait-want).Abs() > 10*time.Second {
			t.Errorf("call %d: %s, %v, want %s", n, wait, err, want)
		}
	}
}

// Two names never have one field.
func TestField(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	all := []string{
		"key:" + id.String(), "key:" + strings.ToUpper(id.String()), id.String(), "k" + string(id[:]), "key:{" + id.String() + "}", "", "key:",
		"account:live:" + id.String(), "account:test:" + id.String(), "account:" + id.String(), "account:live:x", "l" + string(id[:]),
	}
	fields := map[string]string{}
	for _, name := range all {
		fields[tokenbucket.Field(name)] = name
	}
	if len(fields) != len(all) {
		t.Errorf("%d fields of %d names: %q", len(fields), len(all), fields)
	}
}

// Calls in one round trip reply as they do one by one, also on a server that does not know the script.
func TestDoAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		c := start(t)
		for _, when := range []string{"the script is unknown", "it is known"} {
			calls := make([]tokenbucket.Call, 3)
			for n := range calls {
				key := request{key: "key:" + uuid.NewString()}
				calls[n] = *newCall(1, tokenbucket.Rule{Rate: n + 1, Burst: n + 1, Period: time.Hour}, tokenbucket.Rule{}, key, key, key)
			}
			tokenbucket.DoAll(t.Context(), c.client, calls)
			for n := range calls {
				reply, err := calls[n].Reply()
				if err != nil || len(reply) != 6 {
					t.Fatalf("%s: call %d: %v, %v", when, n, reply, err)
				}
				allowed := []bool{reply[0] >= 0, reply[2] >= 0, reply[4] >= 0}
				if want := []bool{true, n >= 1, n >= 2}; !slices.Equal(allowed, want) {
					t.Errorf("%s: call %d allows %v, want %v", when, n, allowed, want)
				}
			}
		}
	})
}
