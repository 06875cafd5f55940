package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
	"intents.internal/core/representation"
	"intents.internal/core/transfer"
)

// bufferedRows is how many intents of a list are buffered before the first byte is sent. A list that ends by then gets an entity tag
// of its content, a length and, if something fails, an error response; a longer one is streamed.
const bufferedRows = 1000

// listTransfers answers GET /v2/transfers with the account's intents: all of them, or a page where a limit is given. An error
// in mid-stream closes the connection, so that no client takes a part for the whole list.
func (s *Server) listTransfers(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	list, err := parseTransferList(r)
	if err != nil {
		return err
	}
	var summaries iter.Seq2[transfer.Summary, error]
	if list.limit > 0 {
		list.filter.Limit = list.limit + 1 // one more shows whether there is a next page
		summaries = s.Store.Transfers(r.Context(), by.AccountID, list.filter)
	} else {
		check, err := s.tagWholeList(w, r, by.AccountID)
		if err != nil || !check.Changed {
			return err
		}
		summaries = s.Store.TransfersAfterCheck(r.Context(), by.AccountID, list.filter, check)
	}
	next, stop := iter.Pull2(summaries)
	defer stop()
	rows := list.limit
	if rows == 0 {
		rows = bufferedRows
	}
	body, last, more, err := buffer(next, rows)
	if err != nil {
		return err
	}
	if more != nil && list.limit == 0 {
		return stream(w, body, *more, next)
	}
	if more != nil {
		w.Header().Set("Link", nextLink(r, last))
	}
	newPage(append(body, ']')).serve(w, r)
	return nil
}

// wholeListTag is the prefix of the entity tags of lists that may be too long to hash before they are sent. The rest of the tag is the
// position of the account's events before the list was read, so that a list is never older than its tag. The number grows with each
// release that changes the fields of an intent or their order.
const wholeListTag = `W/"e2.`

// tagWholeList answers 304 if no intent of the account has changed since the client's list, and otherwise sets the entity tag of the
// list that follows.
func (s *Server) tagWholeList(w http.ResponseWriter, r *http.Request, accountID uuid.UUID) (postgres.ChangeCheck, error) {
	tag := r.Header.Get("If-None-Match")
	cursor, ours := strings.CutPrefix(tag, wholeListTag)
	if !ours {
		cursor = ""
	}
	check, err := s.Store.CheckChanges(r.Context(), accountID, strings.TrimSuffix(cursor, `"`), s.Store.Now())
	if err != nil {
		return postgres.ChangeCheck{}, err
	}
	w.Header().Set("Cache-Control", "private, no-cache")
	if !check.Changed {
		w.Header().Set("ETag", tag)
		w.WriteHeader(http.StatusNotModified)
		return check, nil
	}
	w.Header().Set("ETag", wholeListTag+check.Cursor+`"`)
	return check, nil
}

// yieldEvery is how many intents are encoded between two calls of runtime.Gosched, about 0.1 ms. The scheduler alone would let a list
// run for 10 ms.
const yieldEvery = 32

type pull = func() (transfer.Summary, error, bool)

// buffer encodes up to n intents as a JSON array without its closing bracket, and returns the last of them and the one that follows.
func buffer(next pull, n int) (body []byte, last transfer.Summary, more *transfer.Summary, err error) {
	var out bytes.Buffer
	out.WriteByte('[')
	for rows := 0; ; rows++ {
		summary, err, ok := next()
		if err != nil {
			return nil, last, nil, err
		}
		if !ok {
			return out.Bytes(), last, nil, nil
		}
		if rows == n {
			return out.Bytes(), last, &summary, nil
		}
		if rows > 0 {
			out.WriteByte(',')
		}
		if rows%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
		entry, err := json.Marshal(representation.NewSummary(summary))
		if err != nil {
			return nil, last, nil, err
		}
		out.Write(entry)
		last = summary
	}
}

// stream sends the buffered intents and then the rest as it is read.
func stream(w http.ResponseWriter, buffered []byte, more transfer.Summary, next pull) error {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	_, _ = out.Write(buffered) // bufio keeps its first error for Flush
	for sent, summary, ok := 1, more, true; ok; sent++ {
		if sent%yieldEvery == 0 {
			runtime.Gosched()
		}
		entry, err := json.Marshal(representation.NewSummary(summary))
		if err != nil {
			return err
		}
		_ = out.WriteByte(',')
		if _, err := out.Write(entry); err != nil {
			return err
		}
		if summary, err, ok = next(); err != nil {
			return err
		}
	}
	_ = out.WriteByte(']')
	return out.Flush()
}

// nextLink is the RFC 8288 link to the next page: the same request with another cursor.
func nextLink(r *http.Request, last transfer.Summary) string {
	parameters, _ := url.ParseQuery(r.URL.RawQuery) // parsed once already
	parameters.Set("cursor", formatCursor(last, parameters.Has("updated-since")))
	return "<" + r.URL.Path + "?" + parameters.Encode() + `>; rel="next"`
}

// parseLimit reads a page size of 1 to 1000.
func parseLimit(s string) (int, bool) {
	limit, err := strconv.Atoi(s)
	return limit, err == nil && limit >= 1 && limit <= bufferedRows && strconv.Itoa(limit) == s
}
