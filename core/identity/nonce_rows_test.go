package identity_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/core/pgtest"
)

func TestTakeNonce_Once(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	at := pgtest.Now()
	for _, nonce := range []string{"contested", "bystander", "short-lived"} {
		if err := store.Identities.InsertNonce(t.Context(), pgtest.Fingerprint(nonce), at.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	take := func(nonce string, when time.Time) bool {
		taken, err := store.Identities.TakeNonce(t.Context(), pgtest.Fingerprint(nonce), when)
		if err != nil {
			t.Error(err)
		}
		return taken
	}
	const takers = 32
	var winners atomic.Int32
	var work sync.WaitGroup
	for range takers {
		work.Go(func() {
			if take("contested", at) {
				winners.Add(1)
			}
		})
	}
	work.Wait()
	if winners.Load() != 1 {
		t.Errorf("%d of %d takers got the nonce", winners.Load(), takers)
	}
	for _, c := range []struct {
		nonce string
		when  time.Time
		want  bool
	}{
		{"contested", at, false},
		{"unknown", at, false},
		{"short-lived", at.Add(time.Minute), false},
		{"bystander", at.Add(time.Minute - time.Microsecond), true},
		{"bystander", at, false},
	} {
		if got := take(c.nonce, c.when); got != c.want {
			t.Errorf("take %s: %t, want %t", c.nonce, got, c.want)
		}
	}
	if err := store.Identities.InsertNonce(t.Context(), pgtest.Fingerprint("short-lived"), at); err == nil {
		t.Error("one nonce was made twice")
	}
}
