package console_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
)

// The log is filtered by action, person and date, and no filter shows another account's.
func TestListAudit_Filters(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	ann.makeKey("first")
	ann.get("/console/audit?action=key_created").is(http.StatusOK, "test key, never expires", "Show all")
	if text := ann.get("/console/audit?action=key_created").text(); strings.Contains(text, "192.0.2.1 Signed in") || !strings.Contains(text, "first") {
		t.Errorf("the filter lets others through: %s", text)
	}
	ann.get("/console/audit?action=key_deleted").is(http.StatusOK, "No entries match these filters.")
	ann.get("/console/audit?who=operator").is(http.StatusOK, "No entries match these filters.")
	ann.get("/console/audit?who="+pgtest.LookUp[string](t, s.store, "SELECT id::text FROM accounts")).is(http.StatusOK, "test key, never expires")
	ann.get("/console/audit?since=2026-01-01&until=2026-01-02").is(http.StatusOK, "No entries match these filters.")
	ann.get("/console/audit?action=none&who=me&since=today&until=2026-13-01").is(http.StatusBadRequest,
		"There is no such action.", "There is no such person.", "This is not a date such as 2026-11-29.")
}

// The file has what the page has, and no cell that a spreadsheet would run.
func TestExportAudit(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	ann.makeKey(`=HYPERLINK("https://example.com"), "a"`)
	a := ann.get("/console/audit.csv?action=key_created")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 2 || a.header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%d %v: %q, %v", a.status, a.header, a.body, err)
	}
	got := slices.Concat(rows[1][2:4], rows[1][7:10])
	want := []string{"key_created", "Key created", `'=HYPERLINK("https://example.com"), "a"`, "Ann", "ann@example.com"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the entry (-want +got):\n%s", diff)
	}
	if others := ben.get("/console/audit.csv?action=key_created"); strings.Contains(others.body, "key_created") {
		t.Errorf("another account's file: %s", others.body)
	}
	ann.get("/console/audit.csv?action=none").is(http.StatusBadRequest, "There is no such action.")
}
