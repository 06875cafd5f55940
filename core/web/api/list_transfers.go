package api

import (
	"iter"
	"net/http"
	"net/url"
	"runtime"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/core/web/spreadsheet"
)

// bufferedRows is how many intents of a list are buffered before the first byte is sent. A list of at most this length gets an
// entity tag, a Content-Length and, on failure, an error response. A longer list is streamed.
const bufferedRows = 1000

// listFormat is how a list is written.
type listFormat struct {
	mediaType string
	// tagPrefix is the prefix of the entity tags of lists that may be too long to hash before they are sent. The rest of the tag
	// is the position of the account's events before the list was read, so the list is never older than its tag. The number is
	// incremented with each release that changes the fields of an intent or their order.
	tagPrefix        string
	begin, next, end string
	appendRow        func(b []byte, s *transfer.Summary) []byte
}

var (
	jsonList = listFormat{
		mediaType: "application/json", tagPrefix: `W/"e6.`, begin: "[", next: ",", end: "]", appendRow: transfer.AppendSummary,
	}
	csvList = listFormat{
		mediaType: spreadsheet.MediaType, tagPrefix: `W/"c1.`, begin: string(spreadsheet.AppendRow(nil, transfer.Columns...)),
		appendRow: func(b []byte, s *transfer.Summary) []byte { return spreadsheet.AppendRow(b, s.Cells()...) },
	}
)

// listFormatOf returns the format that the client prefers. Their entity tags differ, and no cache answers without asking, so that the
// responses need no Vary for it.
func listFormatOf(r *http.Request) *listFormat {
	if negotiate(r, jsonList.mediaType, "text/csv") == "text/csv" {
		return &csvList
	}
	return &jsonList
}

// listTransfers answers GET /v2/transfers with the account's intents: all of them, or a page if limit is set; those of the key's
// environment, unless environment is set. An error in mid-stream closes the connection, so that clients detect the truncation.
func (s *Server) listTransfers(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	list, err := parseTransferList(r, by)
	if err != nil {
		return err
	}
	format := listFormatOf(r)
	if list.limit > 0 {
		return s.listPage(w, r, by.AccountID, list, format)
	}
	check, err := s.tagWholeList(w, r, by.AccountID, format)
	if err != nil || !check.Changed {
		return err
	}
	return streamList(w, r, format, s.Transfers.TransfersAfterCheck(r.Context(), by.AccountID, list.filter, check))
}

// listPage writes one page, which may be empty and have a next one.
func (s *Server) listPage(w http.ResponseWriter, r *http.Request, accountID uuid.UUID, list transferList, format *listFormat) error {
	body := route.NewBuffer()
	defer body.Release()
	body.Bytes = append(body.Bytes, format.begin...)
	list.filter.Limit = list.limit
	rows, next, err := s.Transfers.SummaryPage(r.Context(), accountID, list.filter)
	if err != nil {
		return err
	}
	for n := range rows {
		body.Bytes = format.appendNext(body.Bytes, n, &rows[n])
	}
	if next != nil {
		w.Header().Set("Link", nextLink(r, *next))
	}
	body.Bytes = append(body.Bytes, format.end...)
	format.page(body.Bytes).serve(w, r)
	return nil
}

// page returns a complete list.
func (f *listFormat) page(body []byte) page {
	p := newPage(body)
	p.mediaType = f.mediaType
	return p
}

// streamList writes the complete list. It streams the intents after the buffered rows while it reads them.
func streamList(w http.ResponseWriter, r *http.Request, format *listFormat, summaries iter.Seq2[transfer.Summary, error]) error {
	const chunk = 32 << 10
	body := route.NewBuffer()
	defer body.Release()
	body.Bytes = append(body.Bytes, format.begin...)
	rows := 0
	for summary, err := range summaries {
		if err != nil {
			return err
		}
		if rows == bufferedRows {
			w.Header().Set("Content-Type", format.mediaType)
		}
		if rows >= bufferedRows && len(body.Bytes) >= chunk {
			if _, err := w.Write(body.Bytes); err != nil {
				return err
			}
			body.Bytes = body.Bytes[:0]
		}
		body.Bytes = format.appendNext(body.Bytes, rows, &summary)
		rows++
	}
	body.Bytes = append(body.Bytes, format.end...)
	if rows <= bufferedRows {
		format.page(body.Bytes).serve(w, r)
		return nil
	}
	_, err := w.Write(body.Bytes)
	return err
}

// tagWholeList responds with 304 if no intent of the account has changed since the client's list. Otherwise it sets the entity
// tag of the list that follows.
func (s *Server) tagWholeList(w http.ResponseWriter, r *http.Request, accountID uuid.UUID, format *listFormat) (intents.ChangeCheck, error) {
	tag := r.Header.Get("If-None-Match")
	cursor, ours := strings.CutPrefix(tag, format.tagPrefix)
	if !ours {
		cursor = ""
	}
	check, err := s.Transfers.CheckChanges(r.Context(), accountID, strings.TrimSuffix(cursor, `"`), s.Now())
	if err != nil {
		return intents.ChangeCheck{}, err
	}
	if !check.Changed {
		route.CachedByCaller.Allow(w.Header(), tag)
		w.WriteHeader(http.StatusNotModified)
		return check, nil
	}
	route.CachedByCaller.Allow(w.Header(), format.tagPrefix+check.Cursor+`"`)
	return check, nil
}

// yieldEvery is how many intents are encoded between two calls of runtime.Gosched, about 0.1 ms. The scheduler alone preempts
// only after 10 ms.
const yieldEvery = 256

// appendNext appends an intent to a list; row is its index, from 0.
func (f *listFormat) appendNext(b []byte, row int, summary *transfer.Summary) []byte {
	if row > 0 {
		b = append(b, f.next...)
	}
	if row%yieldEvery == yieldEvery-1 {
		runtime.Gosched()
	}
	return f.appendRow(b, summary)
}

// nextLink returns the RFC 8288 link to the next page: the same request with the next cursor.
func nextLink(r *http.Request, last intents.KeysetCursor) string {
	parameters, _ := url.ParseQuery(r.URL.RawQuery) // it was parsed before without error
	parameters.Set("cursor", formatCursor(last, parameters.Has("updated-since")))
	return "<" + r.URL.Path + "?" + parameters.Encode() + `>; rel="next"`
}
