package tokenbucket_test

import (
	"testing"
	"testing/synctest"
	"time"

	"intents.internal/pkg/tokenbucket"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := func(name string, burst int) tokenbucket.Bucket {
			return tokenbucket.Bucket{Name: name, Rule: tokenbucket.Rule{Rate: burst, Burst: burst, Period: time.Hour}}
		}
		key, account, unlimited := bucket("key", 2), bucket("account", 3), tokenbucket.Bucket{Name: "unlimited"}
		m := tokenbucket.NewMemory(2)
		takes := func(what string, want time.Duration, buckets ...tokenbucket.Bucket) {
			t.Helper()
			if wait := m.Take(buckets...); wait != want {
				t.Errorf("%s: wait %s, want %s", what, wait, want)
			}
		}
		for range 2 {
			takes("from both", 0, key, account)
		}
		takes("from both, the key's empty", 30*time.Minute, key, account)
		takes("the account's last, which the refused take left", 0, account)
		takes("from both empty, the longer wait", 30*time.Minute, account, key)
		m.Refund(account)
		takes("after a refund", 0, account)
		takes("after the refunded token", 20*time.Minute, account)
		m.Reset(key.Name)
		for range 2 {
			takes("after a reset", 0, key)
		}
		time.Sleep(30 * time.Minute)
		takes("after an emission interval", 0, key)
		for range 10 {
			takes("without a limit", 0, unlimited) // which evicts the account's bucket, the least recently used
		}
		for range 3 {
			takes("after the eviction", 0, account)
		}
	})
}
