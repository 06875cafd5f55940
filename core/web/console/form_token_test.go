package console_test

import (
	"database/sql"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
)

// A form whose key was not stored can be sent again, and makes one key then.
func TestCreateKey_FormAfterFailure(t *testing.T) {
	t.Parallel()
	refuse := func(table string) func(*testing.T, *postgres.Store) func() {
		return func(t *testing.T, store *postgres.Store) func() {
			t.Helper()
			pgtest.Exec(t, store, "ALTER TABLE "+table+" ADD CONSTRAINT refused CHECK (false) NOT VALID")
			return func() { pgtest.Exec(t, store, "ALTER TABLE "+table+" DROP CONSTRAINT refused") }
		}
	}
	for name, c := range map[string]struct {
		fail   func(*testing.T, *postgres.Store) (mend func())
		status int
	}{
		"the key is refused":         {refuse("api_keys"), http.StatusInternalServerError},
		"the audit entry is refused": {refuse("audit_log"), http.StatusInternalServerError},
		"the account is locked": {func(t *testing.T, store *postgres.Store) func() {
			t.Helper()
			tx, err := store.Pool().BeginTx(t.Context(), &sql.TxOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "SELECT FROM accounts FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
			return func() { _ = tx.Rollback() }
		}, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := pgtest.OpenImpatient(t, pgtest.Database(t))
			ann := startOn(t, store).signedUp(t, "ann@example.com")
			form := []string{"name", "once", "environment", "test", "expiresIn", "never", "formToken", ann.get("/console").field("formToken")}
			mend := c.fail(t, store)
			failed := ann.post("/console/keys", form...)
			mend()
			got := []int{failed.status}
			for range 2 {
				got = append(got, ann.post("/console/keys", form...).status)
			}
			if diff := cmp.Diff([]int{c.status, http.StatusOK, http.StatusConflict}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := pgtest.LookUp[int](t, store, "SELECT count(*) FROM api_keys"); n != 1 {
				t.Errorf("%d keys, want one", n)
			}
		})
	}
}

// Of any number of copies that arrive together one makes a key.
func TestCreateKey_FormSentAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	form := []string{"name", "once", "environment", "test", "expiresIn", "never", "formToken", ann.get("/console").field("formToken")}
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
