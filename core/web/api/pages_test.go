package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/wire"
)

var nextLink = regexp.MustCompile(`^<(/v2/transfers\?[^>]+)>; rel="next"$`)

// The pages of a list, followed by their links, are the list, with no intent twice and none left out, though new ones
// come in meanwhile: they are left out, or follow at the end of a list that is ordered by the last change.
func TestListTransfers_Pages(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	s.CreateTransfer(t, webtest.TransferBody, account...)
	s.multiply(t, 1205)
	ids := func(path string) (ids []string, next string) {
		t.Helper()
		response := s.Send(t, "GET", path, "", account...)
		var list []struct{ ID string }
		if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &list); err != nil || response.StatusCode != 200 {
			t.Fatalf("%s: %d, %v", path, response.StatusCode, err)
		}
		for _, entry := range list {
			ids = append(ids, entry.ID)
		}
		if link := response.Header.Get("Link"); link != "" {
			match := nextLink.FindStringSubmatch(link)
			if match == nil {
				t.Fatalf("%s: Link %s", path, link)
			}
			next = match[1]
		}
		return ids, next
	}
	for _, query := range []string{"", "status=created,failed&", "updated-since=2020-01-01T00:00:00Z&", "chain-id=eip155:11155111&type=transfer&"} {
		whole, _ := ids("/v2/transfers?" + strings.TrimSuffix(query, "&"))
		var paged []string
		for _, limit := range []string{"7", "1000"} {
			paged = paged[:0]
			next := "/v2/transfers?" + query + "limit=" + limit
			for next != "" {
				var page []string
				page, next = ids(next)
				paged = append(paged, page...)
				if limit == "1000" {
					s.CreateTransfer(t, webtest.TransferBody, account...)
				}
			}
			if strings.HasPrefix(query, "updated-since") && len(paged) > len(whole) {
				paged = paged[:len(whole)] // those that came in meanwhile follow
			}
			if diff := cmp.Diff(whole, paged); diff != "" {
				t.Errorf("%s in pages of %s (-whole +pages):\n%s", query, limit, diff)
			}
			whole, _ = ids("/v2/transfers?" + strings.TrimSuffix(query, "&"))
		}
	}
	if _, next := ids("/v2/transfers?limit=1000&type=swap"); next != "" {
		t.Errorf("an empty page has a next one: %s", next)
	}
}

// A page of a filter that no index decides ends where its scan ends, and the next page goes on from there: an empty page has a next one.
func TestListTransfers_EmptyPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	s.CreateTransfer(t, webtest.TransferBody, account...)
	s.multiply(t, 15_000)
	hash := "0x" + strings.Repeat("ab", 32)
	pgtest.Exec(t, s.Store, `UPDATE transfers SET status = CASE id WHEN (SELECT id FROM transfers ORDER BY id LIMIT 1) THEN 'submitted' ELSE 'confirmed' END, hash = $1`, hash)
	path := "/v2/transfers?status=submitted&hash=" + hash
	whole := s.text(t, path, account...)
	response := s.Send(t, "GET", path+"&limit=2", "", account...)
	next := nextLink.FindStringSubmatch(response.Header.Get("Link"))
	if body := webtest.ReadAll(t, response); body != "[]" || next == nil {
		t.Fatalf("the first page is %s, Link %s", body, response.Header.Get("Link"))
	}
	response = s.Send(t, "GET", next[1], "", account...)
	if diff := cmp.Diff(whole, webtest.ReadAll(t, response)); diff != "" || len(whole) < 10 || response.Header.Get("Link") != "" {
		t.Errorf("the second page (-whole list +page), Link %s:\n%s", response.Header.Get("Link"), diff)
	}
}

func TestListTransfers_Parameters(t *testing.T) {
	t.Parallel()
	s := start(t)
	const (
		notLimit  = "must be a whole number from 1 to 1000"
		notStatus = "must be statuses with commas between them, each once; they are created, submitted, confirmed, filled, refunded, failed, expired, cancelled"
		notCursor = "is not a cursor of this list; take it from the Link header"
		notTime   = "must be an RFC 3339 time such as 2027-01-01T00:00:00Z"
		notHash   = "must be 0x and 64 hexadecimal digits"
		notText   = "must have 1 to 128 characters"
		notType   = `must be "transfer", "swap" or "bridge"`

		notAccountID = "must be a CAIP-10 account id such as eip155:1:0x0000000000000000000000000000000000000001"

		notEnvironment = `must be "test", "live" or "all"`
	)
	for query, issues := range map[string][]string{
		"type=":                             {"type", notType},
		"type=Swap":                         {"type", notType},
		"type=swap,bridge":                  {"type", notType},
		"type=swap%00":                      {"type", "must not hold a NUL character"},
		"type=swap&type=swap":               {"type", "is given twice"},
		"Type=swap":                         {"Type", "is not a known parameter"},
		"type=swap&account=1&a=%7":          {"query", "is not a well-formed query string"},
		"type=loan&accountId=1":             {"accountId", "is not a known parameter"},
		"limit=0":                           {"limit", notLimit},
		"limit=1001":                        {"limit", notLimit},
		"limit=01":                          {"limit", notLimit},
		"limit=%2B1":                        {"limit", notLimit},
		"limit=":                            {"limit", notLimit},
		"environment=mainnet":               {"environment", notEnvironment},
		"environment=":                      {"environment", notEnvironment},
		"status=":                           {"status", notStatus},
		"status=created,":                   {"status", notStatus},
		"status=created,created":            {"status", notStatus},
		"status=Created":                    {"status", notStatus},
		"cursor=":                           {"cursor", notCursor},
		"cursor=AAAA":                       {"cursor", notCursor},
		"cursor=" + strings.Repeat("_", 32): {"cursor", notCursor},
		"cursor=AaH8aGEdeTO8f5BrLHhnLwAGYMIIPRZY":                                      {"cursor", notCursor}, // of a list ordered by the last change
		"updated-since=2026-01-01T00:00:00Z&cursor=AaH8aGEdeTO8f5BrLHhnLw":             {"cursor", notCursor}, // of one that is not
		"updated-since=2026-01-01T00:00:00Z&cursor=AaH8aGEdeTO8f5BrLHhnLwAGYMIIPRZYAQ": {"cursor", notCursor},
		"updated-since=2027-01-01":                                                     {"updated-since", notTime},
		"updated-since=1969-12-31T00:00:00Z":                                           {"updated-since", notTime},
		"order-id=0x12":                                                                {"order-id", notHash},
		"hash=12":                                                                      {"hash", notHash},
		"reference=":                                                                   {"reference", notText},
		"reference=%ff":                                                                {"reference", notText},
		"chain-id=1":                                                                   {"chain-id", "must be a CAIP-2 chain id such as eip155:1"},
		"destination-chain=1":                                                          {"destination-chain", "must be a CAIP-2 chain id such as eip155:1"},
		"account=0x1":                                                                  {"account", notAccountID},
		"token=eip155:1":                                                               {"token", notAccountID},
		"created-after=yesterday":                                                      {"created-after", notTime},
		"created-before=1969-12-31T00:00:00Z":                                          {"created-before", notTime},
		"label.=1":                                                                     {"label.", wire.LabelKeyRule},
		"label.a%20b=1":                                                                {"label.a b", wire.LabelKeyRule},
		"label.order=":                                                                 {"label.order", wire.LabelValueRule},
		"label.order=1&label.order":                                                    {"label.order", "is given twice"},
		"label=1":                                                                      {"label", "is not a known parameter"},
		"limit=0&type=x&hash=":                                                         {"hash", notHash, "limit", notLimit, "type", notType},
	} {
		webtest.Same(t, query, webtest.Invalid(t, issues...), s.Call(t, "GET", "/v2/transfers?"+query, "", webtest.Keyed(uuid.New(), "test")...))
	}
}

// A list that has not changed is not sent again; one that has changed in any way is.
func TestListTransfers_ETag(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	for _, path := range []string{"/v2/transfers", "/v2/transfers?limit=10", "/v2/transfers?type=transfer"} {
		read := func(held string) (status int, tag string) {
			response := s.Send(t, "GET", path, "", append(account, "If-None-Match", held)...)
			defer response.Body.Close()
			return response.StatusCode, response.Header.Get("Etag")
		}
		_, tag := read("")
		if status, again := read(tag); status != http.StatusNotModified || again != tag {
			t.Errorf("%s unchanged: %d %s", path, status, again)
		}
		s.CreateTransfer(t, webtest.TransferBody, account...)
		status, newer := read(tag)
		if status != 200 || newer == tag {
			t.Errorf("%s with one more: %d %s", path, status, newer)
		}
		pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'submitted', hash = '0xabc' WHERE id = $1`, location[len("/v2/transfers/"):])
		if status, changed := read(newer); status != 200 || changed == newer {
			t.Errorf("%s with another status: %d %s", path, status, changed)
		}
		pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'created', hash = NULL`)
	}
}

// A list too long to be held is tagged too, and any new event of the account changes its tag.
func TestListTransfers_StreamedETag(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	s.multiply(t, 1500)
	read := func(held string) (status int, tag string, length int) {
		t.Helper()
		response := s.Send(t, "GET", "/v2/transfers", "", append(account, "If-None-Match", held)...)
		return response.StatusCode, response.Header.Get("Etag"), len(webtest.ReadAll(t, response))
	}
	status, tag, whole := read("")
	if status != 200 || !strings.HasPrefix(tag, `W/"e6.`) {
		t.Fatalf("%d %s", status, tag)
	}
	s.CreateTransfer(t, webtest.TransferBody, webtest.Keyed(uuid.New(), "test")...)
	if status, again, length := read(tag); status != http.StatusNotModified || again != tag || length != 0 {
		t.Errorf("unchanged, though another account's changed: %d %s, %d bytes", status, again, length)
	}
	for _, change := range []func(){
		func() { s.CreateTransfer(t, webtest.TransferBody, account...) },
		func() { s.Call(t, "POST", location+"/cancel", "", account...) },
	} {
		change()
		status, newer, length := read(tag)
		if status != 200 || newer == tag || length < whole {
			t.Errorf("changed: %d %s, %d bytes", status, newer, length)
		}
		tag = newer
	}
	for _, odd := range []string{`W/"e6."`, `W/"e6.AAAA"`, `W/"e6.MTc5NTIzNTMxOS85OTk5OTk5OTk6OTk5OTk5OTk5Og"`, `W/"e6.` + strings.Repeat("A", 500) + `"`} {
		if status, _, length := read(odd); status != 200 || length < whole {
			t.Errorf("with tag %s: %d, %d bytes", odd, status, length)
		}
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	s.CreateTransfer(t, webtest.TransferBody, account...)
	s.multiply(t, 1500)
	for _, path := range []string{"/v2/tokens", "/v2/transfers", "/v2/transfers?limit=500", "/openapi.json"} {
		plain := s.text(t, path, append(account, "Accept-Encoding", "identity")...)
		for accept, coding := range map[string]string{
			"gzip": "gzip", "zstd": "zstd", "zstd;q=0, gzip;q=0.5": "gzip", "br, GZIP": "gzip", "br": "", "gzip;q=0": "", "gzip;q=0.0": "",
		} {
			response := s.Send(t, "GET", path, "", append(account, "Accept-Encoding", accept)...)
			raw := webtest.ReadAll(t, response)
			if got := response.Header.Get("Content-Encoding"); got != coding {
				t.Errorf("%s for %q: coding %q, want %q", path, accept, got, coding)
				continue
			}
			if text := unpack(t, coding, raw); text != plain {
				t.Errorf("%s for %q: %d bytes, want %d", path, accept, len(text), len(plain))
			}
			if response.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s for %q: Vary %q", path, accept, response.Header.Get("Vary"))
			}
		}
	}
}

// text is the body of a GET as it came.
func (s *service) text(t *testing.T, path string, header ...string) string {
	t.Helper()
	response := s.Send(t, "GET", path, "", header...)
	defer response.Body.Close()
	return webtest.ReadAll(t, response)
}

func unpack(t *testing.T, coding, raw string) string {
	t.Helper()
	var reader io.Reader = strings.NewReader(raw)
	var err error
	switch coding {
	case "gzip":
		reader, err = gzip.NewReader(reader)
	case "zstd":
		reader, err = zstd.NewReader(reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(reader); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
