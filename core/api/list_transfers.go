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
	"intents.internal/core/transfer"
)

// heldRows is how many intents of a list are held before the first byte is sent. A list that ends by then gets an entity
// tag of its content, a length and, if something fails, an honest error; a longer one is streamed.
const heldRows = 1000

// listTransfers answers GET /v2/transfers with the account's intents: all of them, or a page where a limit is given. An error
// in mid-stream cuts the connection, since a shorter list would be a lie.
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
		list.filter.Limit = list.limit + 1 // one more tells whether there is a next page
		summaries = s.Store.Transfers(r.Context(), by.AccountID, list.filter)
	} else {
		glance, err := s.tagWholeList(w, r, by.AccountID)
		if err != nil || !glance.Changed {
			return err
		}
		summaries = s.Store.TransfersAfterCheck(r.Context(), by.AccountID, list.filter, glance)
	}
	next, stop := iter.Pull2(summaries)
	defer stop()
	held := list.limit
	if held == 0 {
		held = heldRows
	}
	body, last, more, err := hold(next, held)
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

// wholeListTag begins the entity tags of lists that may be too long to be hashed before they are sent. The rest of such
// a tag is where the account's events stood just before the list was read, so that a list can only be newer than its tag.
// The number goes up with each release that shows other fields of an intent or another order.
const wholeListTag = `W/"e2.`

// tagWholeList answers with 304 where nothing of the account's has changed since the list that the client holds, and
// otherwise tags the one that will be sent.
func (s *Server) tagWholeList(w http.ResponseWriter, r *http.Request, accountID uuid.UUID) (postgres.ChangeCheck, error) {
	held := r.Header.Get("If-None-Match")
	cursor, ours := strings.CutPrefix(held, wholeListTag)
	if !ours {
		cursor = ""
	}
	glance, err := s.Store.CheckChanges(r.Context(), accountID, strings.TrimSuffix(cursor, `"`), s.Store.Now())
	if err != nil {
		return postgres.ChangeCheck{}, err
	}
	w.Header().Set("Cache-Control", "private, no-cache")
	if !glance.Changed {
		w.Header().Set("ETag", held)
		w.WriteHeader(http.StatusNotModified)
		return glance, nil
	}
	w.Header().Set("ETag", wholeListTag+glance.Cursor+`"`)
	return glance, nil
}

// together is how many intents are encoded before others have their turn on the processor: about 0.1 ms. The scheduler
// itself would let a list run for 10 ms.
const together = 32

type pull = func() (transfer.Summary, error, bool)

// hold writes up to n intents into an array that is still open, and returns the last of them and the one that follows.
func hold(next pull, n int) (body []byte, last transfer.Summary, more *transfer.Summary, err error) {
	var out bytes.Buffer
	out.WriteByte('[')
	for held := 0; ; held++ {
		summary, err, ok := next()
		if err != nil {
			return nil, last, nil, err
		}
		if !ok {
			return out.Bytes(), last, nil, nil
		}
		if held == n {
			return out.Bytes(), last, &summary, nil
		}
		if held > 0 {
			out.WriteByte(',')
		}
		if held%together == together-1 {
			runtime.Gosched()
		}
		entry, err := json.Marshal(newSummaryJSON(summary))
		if err != nil {
			return nil, last, nil, err
		}
		out.Write(entry)
		last = summary
	}
}

// stream sends what is held and then the rest as it is read.
func stream(w http.ResponseWriter, held []byte, more transfer.Summary, next pull) error {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	_, _ = out.Write(held) // bufio keeps its first error for Flush
	for sent, summary, ok := 1, more, true; ok; sent++ {
		if sent%together == 0 {
			runtime.Gosched()
		}
		entry, err := json.Marshal(newSummaryJSON(summary))
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
	return limit, err == nil && limit >= 1 && limit <= heldRows && strconv.Itoa(limit) == s
}
