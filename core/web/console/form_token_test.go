package console_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
)

// A form whose key was not stored can be sent again, and makes one key then: the audit entry is the last that is written.
func TestCreateKey_FormAfterFailure(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	form := append(slices.Clone(newKey), "name", "once", "formToken", ann.get("/console/keys").field("formToken"))
	pgtest.Exec(t, s.store, "ALTER TABLE audit_log ADD CONSTRAINT refused CHECK (false) NOT VALID")
	got := []int{ann.post("/console/keys", form...).status}
	pgtest.Exec(t, s.store, "ALTER TABLE audit_log DROP CONSTRAINT refused")
	for range 2 {
		got = append(got, ann.post("/console/keys", form...).status)
	}
	if diff := cmp.Diff([]int{http.StatusInternalServerError, http.StatusOK, http.StatusConflict}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM api_keys"); n != 1 {
		t.Errorf("%d keys, want one", n)
	}
}

// Of any number of copies that arrive together one makes a key.
func TestCreateKey_FormSentAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	form := append(slices.Clone(newKey), "name", "once", "formToken", ann.get("/console/keys").field("formToken"))
	var mu sync.Mutex
	var work sync.WaitGroup
	got := map[int]int{}
	for range 8 {
		work.Go(func() {
			a := ann.post("/console/keys", form...)
			mu.Lock()
			defer mu.Unlock()
			got[a.status]++
		})
	}
	work.Wait()
	if diff := cmp.Diff(map[int]int{http.StatusOK: 1, http.StatusConflict: 7}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM api_keys"); n != 1 {
		t.Errorf("%d keys, want one", n)
	}
}
