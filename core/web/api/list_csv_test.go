package api_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// table is a list as CSV.
type table struct {
	status int
	header http.Header
	// rows begin with the names of the columns.
	rows [][]string
}

func (s *service) transferTable(t *testing.T, query string, key []string, header ...string) table {
	t.Helper()
	response := s.Send(t, "GET", "/v2/transfers"+query, "", append(append(slices.Clip(key), "Accept", "text/csv"), header...)...)
	text := webtest.ReadAll(t, response)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || response.StatusCode == 200 && response.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%s: %d %v, %v\n%s", query, response.StatusCode, response.Header, err, text)
	}
	return table{response.StatusCode, response.Header, rows}
}

func TestListTransfers_CSV(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := webtest.Keyed(uuid.New(), "test")
	_, plain, _ := s.CreateTransfer(t, webtest.TransferBody, ann...)
	_, swap, _ := s.CreateTransfer(t, webtest.SwapBody, ann...)
	s.Call(t, "PATCH", swap, `{"reference":"=HYPERLINK(\"a\")","labels":{"order":"4,2","note":"\"x\""}}`, ann...)
	record, _ := s.Call(t, "GET", swap, "", ann...).Body.(map[string]any)
	var dates [3]string
	for n, column := range []string{"created_at", "updated_at", "deadline"} {
		dates[n] = pgtest.LookUp[string](t, s.Store, `SELECT to_char(`+column+` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') FROM transfers WHERE type = 'swap'`)
	}
	want := [][]string{
		{
			"id", "type", "status", "environment", "createdAt", "updatedAt", "deadline", "ended", "reference", "batchId", "labels", "signing", "orderId",
			"sourceChain", "sourceAccount", "sourceToken", "sourceAmount", "destinationChain", "destinationAccount", "destinationToken", "destinationAmount",
			"hash",
		},
		{
			strings.TrimPrefix(swap, "/v2/transfers/"), "swap", "created", "test", dates[0], dates[1], dates[2], "false", `'=HYPERLINK("a")`, "",
			`{"note":"\"x\"","order":"4,2"}`, "", record["orderId"].(string),
			"eip155:11155111", webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", "eip155:11155111", webtest.BobOnSepolia, webtest.SepoliaWETH, "4", "",
		},
	}
	swaps := s.transferTable(t, "?type=swap", ann)
	if diff := cmp.Diff(want, swaps.rows); diff != "" {
		t.Errorf("the whole list (-want +got):\n%s", diff)
	}
	again := s.transferTable(t, "?type=swap", ann, "If-None-Match", swaps.header.Get("Etag"))
	other := s.Send(t, "GET", "/v2/transfers?type=swap", "", append(slices.Clip(ann), "If-None-Match", swaps.header.Get("Etag"))...)
	webtest.ReadAll(t, other)
	if again.status != 304 || other.StatusCode != 200 || other.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the same again is %d, and as JSON %d %v", again.status, other.StatusCode, other.Header)
	}

	page := s.transferTable(t, "?limit=1", ann)
	link := page.header.Get("Link")
	if diff := cmp.Diff(want, page.rows); diff != "" || !strings.HasSuffix(link, `; rel="next"`) {
		t.Fatalf("the first page, Link %s (-want +got):\n%s", link, diff)
	}
	next := s.transferTable(t, strings.TrimPrefix(link[1:strings.Index(link, ">")], "/v2/transfers"), ann)
	if rows := next.rows; len(rows) != 2 || rows[1][0] != strings.TrimPrefix(plain, "/v2/transfers/") {
		t.Errorf("the next page: %q", next.rows)
	}
	if none := s.transferTable(t, "?label.order=none", ann); len(none.rows) != 1 {
		t.Errorf("an empty list: %q", none.rows)
	}
	faulty := s.Call(t, "GET", "/v2/transfers?limit=0", "", append(ann, "Accept", "text/csv")...)
	webtest.Same(t, "a faulty query", webtest.Invalid(t, "limit", "must be a whole number from 1 to 1000"), faulty)
}

// A long list as CSV is streamed, and has the tag of the account's changes.
func TestListTransfers_LongCSV(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, ann...)
	pgtest.Multiply(t, s.Store, uuid.MustParse(strings.TrimPrefix(location, "/v2/transfers/")), 1500)
	long := s.transferTable(t, "", ann)
	tag := long.header.Get("Etag")
	if len(long.rows) != 1502 || !strings.HasPrefix(tag, `W/"c1.`) {
		t.Errorf("%d rows, ETag %s", len(long.rows), tag)
	}
	if again := s.transferTable(t, "", ann, "If-None-Match", tag); again.status != 304 {
		t.Errorf("the same again is %d", again.status)
	}
	if other := s.Send(t, "GET", "/v2/transfers", "", append(ann, "If-None-Match", tag)...); other.StatusCode != 200 || webtest.ReadAll(t, other) == "" {
		t.Errorf("as JSON, with the tag of the other: %d", other.StatusCode)
	}
}
