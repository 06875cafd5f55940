package console_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/wire"
)

// The list is filtered by the day of creation, and by the accounts and tokens of both sides.
func TestListTransfers_Filters(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	old := s.record(t, s.ann(t).ID, keyID, "eip155:11155111", "old")
	fresh := s.record(t, s.ann(t).ID, keyID, "eip155:84532", "fresh")
	day := time.Now().UTC().AddDate(0, 0, -3)
	pgtest.Exec(t, s.store, "UPDATE transfers SET id = $2, created_at = $3 WHERE id = $1", old.ID, transfer.NewID(day), day)
	pgtest.Exec(t, s.store, "UPDATE transfers SET source_account = '0x3333333333333333333333333333333333333333' WHERE id = $1", fresh.ID)
	pgtest.Exec(t, s.store, "UPDATE transfers SET labels = $2 WHERE id = $1", fresh.ID, wire.NewLabels(map[string]string{"customer": "42", "run": "a=b"}))
	on := func(at time.Time) string { return at.Format(time.DateOnly) }
	for query, want := range map[string]string{
		"since=" + on(day):                              "fresh old",
		"since=" + on(day) + "&until=" + on(day):        "old",
		"since=" + on(day.AddDate(0, 0, 1)):             "fresh",
		"until=" + on(day.AddDate(0, 0, -1)):            "",
		"account=eip155:11155111:" + alice:              "old",
		"account=eip155:84532:" + bob:                   "fresh",
		"chain=eip155:11155111&account=" + alice:        "old",
		"account=" + alice:                              "old",
		"chain=eip155:84532&account=" + alice:           "",
		"token=" + fresh.Destination.Token.String():     "fresh",
		"token=" + fresh.Source.Token.String():          "fresh old",
		"token=eip155:84532:" + pgtest.Alice + "&type=": "",
		"label=customer%3D42":                           "fresh",
		"label=run%3Da%3Db&type=bridge":                 "fresh",
		"label=run%3Da":                                 "",
	} {
		var got []string
		page := ann.get("/console/transfers?" + query).is(http.StatusOK)
		for _, reference := range []string{"fresh", "old"} {
			if strings.Contains(page.text(), " "+reference+" ") {
				got = append(got, reference)
			}
		}
		if shown := strings.Join(got, " "); shown != want {
			t.Errorf("%s shows %q, want %q", query, shown, want)
		}
	}
	bad := ann.get("/console/transfers?since=2026-13-01&account=eip155:1&label=customer").is(http.StatusBadRequest)
	bad.tied("since", "This is not a date such as 2026-11-29.")
	bad.tied("account", "This is neither an address nor a chain and an address, such as eip155:1:0x…")
	bad.tied("label", "This is not a label: a key, an equals sign and a value, such as customer=42.")
}

// The file has what the list has, whole, and no cell that a spreadsheet would run.
func TestExportTransfers(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	keyID, _ := ann.makeKey("mover")
	intent := s.record(t, s.ann(t).ID, keyID, "eip155:84532", "=1+1")
	pgtest.InsertTransfer(t, s.store, s.known, s.ann(t).ID, pgtest.TransferBody)
	link := ann.get("/console/transfers?type=bridge").link("/console/transfers.csv")
	a := ann.get(link)
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || a.header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%d %v: %q, %v", a.status, a.header, a.body, err)
	}
	summary := intent.Summary()
	cells := summary.Cells()
	cells[slices.Index(transfer.Columns, "reference")] = "'=1+1"
	want := [][]string{append(slices.Clone(transfer.Columns), "source", "destination"), append(cells, "1.5 USDC", "0.000004 USDC")}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("%s (-want +got):\n%s", link, diff)
	}
	if others := ben.get("/console/transfers.csv?environment=all"); strings.Contains(others.body, "USDC") {
		t.Errorf("another account's file: %s", others.body)
	}
	if none := ann.get("/console/transfers.csv?label=customer%3D42").is(http.StatusOK); strings.Contains(none.body, "USDC") {
		t.Errorf("the file has intents without the label: %s", none.body)
	}
	ann.get("/console/transfers.csv?label=%3D42").is(http.StatusBadRequest).tied("label", "This is not a label: a key, an equals sign and a value, such as customer=42.")
	ann.get("/console/transfers.csv?status=lost").is(http.StatusBadRequest, "There is no such status.")
}

// A file with more transfers than fit says that the older ones are left out.
func TestExportTransfers_Bounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	pgtest.InsertTransfer(t, s.store, s.known, s.ann(t).ID, pgtest.TransferBody)
	pgtest.Exec(t, s.store, `INSERT INTO transfers SELECT made.* FROM transfers t, generate_series(1, 10000) AS n,
		jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256(n::text::bytea))) AS made`)
	lines := strings.Split(strings.TrimSpace(ann.get("/console/transfers.csv").body), "\n")
	if last := lines[len(lines)-1]; len(lines) != 10_002 || !strings.Contains(last, "older transfers are left out") {
		t.Errorf("%d lines, the last is %s", len(lines), last)
	}
}
