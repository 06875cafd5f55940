package tokenbucket_test

import (
	"testing"
	"time"

	"intents.internal/pkg/tokenbucket"
)

// A refund returns one token, never more than the burst of the rule in force; a reset returns all.
func TestRefundOne(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start func(*testing.T) *clocked) {
		t.Helper()
		c := start(t)
		ctx, bucket := t.Context(), tokenbucket.Bucket{Name: "sign-in:somebody", Rule: tokenbucket.Per(3, 3*time.Hour)}
		takes := func(when string, want ...time.Duration) {
			t.Helper()
			for n, want := range want {
				got, err := tokenbucket.TakeOne(ctx, c.client, bucket)
				if err != nil || got.Round(time.Millisecond) != want {
					t.Fatalf("%s, request %d: waits %s, want %s: %v", when, n, got, want, err)
				}
			}
		}
		does := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		does(tokenbucket.RefundOne(ctx, c.client, bucket))
		takes("a full bucket with a refund", 0, 0, 0, time.Hour)
		does(tokenbucket.RefundOne(ctx, c.client, bucket))
		takes("an empty bucket with a refund", 0, time.Hour)
		does(tokenbucket.ResetOne(ctx, c.client, bucket.Name))
		takes("after a reset", 0)
		does(tokenbucket.RefundOne(ctx, c.client, bucket))
		takes("a bucket that a refund filled", 0, 0, 0, time.Hour)
		bucket.Rule = tokenbucket.Per(3, 3*time.Minute)
		does(tokenbucket.RefundOne(ctx, c.client, bucket))
		takes("a refund under a shorter period", 0, time.Minute)
	})
}
