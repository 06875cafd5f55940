package webtest

import (
	"sync/atomic"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
)

// MustRefuseUnread repeats a request of a network that is over its limit until it is refused, which must ask nothing of the database.
func MustRefuseUnread(t *testing.T, what string, statements *pgtest.Statements, refused func() bool) {
	t.Helper()
	for range 20 { // the limit lets twenty a second through
		before := statements.Count("")
		if refused() {
			if statements.Count("") != before {
				t.Errorf("%s: a refused request asks the database", what)
			}
			return
		}
	}
	var tries atomic.Int64 // a slow machine is never over the limit with one request after another
	asynctest.AtOnce(16, func() bool { return refused() || tries.Add(1) > 20_000 })
	if tries.Load() > 20_000 {
		t.Errorf("%s is not refused", what)
	}
}
