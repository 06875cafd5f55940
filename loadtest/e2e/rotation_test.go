package e2e_test

import (
	"net/http"
	"testing"
	"time"
)

// A key that was rotated inherits the bucket of the one before it: rotation is no way around the limit.
func TestRotateKey_SameBucket(t *testing.T) {
	t.Parallel()
	owner := newPerson(t, running.Env().GatewayURL)
	old := owner.newKey(t)
	began := time.Now()
	passed := passes(t, old.Key)
	for n := range 3 {
		next := expect[createdKey](t, owner.do(http.MethodPost, "/auth/api-key/rotate", map[string]any{"keyId": old.ID, "gracePeriod": n * 60}), 200)
		passed += passes(t, next.Key)
		old = next
	}
	if earned := int(time.Since(began).Seconds() / 1.2); passed < 50 || passed > 50+earned {
		t.Errorf("%d requests passed over three rotations; want 50 and at most %d that were earned meanwhile", passed, earned)
	}
}

// passes makes requests with a good key, at every gateway in turn, until each has said that it is over its limit.
func passes(t *testing.T, key string) (passed int) {
	t.Helper()
	c := apiClient(t, key)
	for _, c.base = range running.Env().GatewayURLs {
		for {
			a := c.do(http.MethodGet, "/v2/chains", nil)
			if a.Status == http.StatusTooManyRequests {
				break
			}
			if a.Status != http.StatusOK {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			passed++
		}
	}
	return passed
}
