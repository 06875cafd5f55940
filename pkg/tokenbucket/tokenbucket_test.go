package tokenbucket_test

import (
	"math"
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
		const others = 3 // the other bucket, began and mirror_until
		current, previous := c.client.HLen(t.Context(), tokenbucket.Current).Val(), c.client.HLen(t.Context(), tokenbucket.Previous).Val()
		if current != others || previous != others {
			t.Errorf("%d and %d fields are left", current, previous)
		}
	})
}

// Full tells of buckets in either hash and in redis_rate's keys, and takes nothing.
func TestFull(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		c := start(t)
		c.stopMirroring()
		seconds := func(d time.Duration) float64 { return float64(c.now.Unix()-tokenbucket.Epoch) + d.Seconds() }
		all := []string{"key:" + uuid.NewString(), "n", "key:" + uuid.NewString(), "nobody's", "junk"}
		c.take(fiftyAMinute, all[0])
		want := []float64{seconds(1200 * time.Millisecond), 0, 0, 0, math.NaN()}
		c.pass(64 * time.Second)
		c.take(fiftyAMinute, all[1], all[1])
		want[1] = seconds(2400 * time.Millisecond)
		c.takePrevious(fiftyAMinute, all[2])
		want[2] = seconds(1200 * time.Millisecond)
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
