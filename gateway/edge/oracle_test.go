package edge_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
)

const (
	maxHeader = 8 << 10
	maxBody   = 64 << 10
)

// reading is what a parser makes of one request.
type reading struct {
	Method, Target, Host, Body string
	// Fields are the headers under their lower-case names, but for those that say how the message is framed.
	Fields map[string][]string
}

// readByFasthttp takes the stream apart as fasthttp does, up to what it does not understand.
func readByFasthttp(stream []byte) (requests []reading) {
	r := bufio.NewReaderSize(bytes.NewReader(stream), maxHeader)
	for {
		var q fasthttp.Request
		if q.Header.Read(r) != nil || q.ContinueReadBody(r, maxBody, false) != nil {
			return requests
		}
		h := &q.Header
		got := reading{
			Method: string(h.Method()), Target: string(h.RequestURI()), Host: string(h.Host()), Body: string(q.Body()), Fields: map[string][]string{},
		}
		for key, value := range h.All() {
			name := strings.ToLower(string(key))
			if !framingFields[name] {
				got.Fields[name] = append(got.Fields[name], string(value))
			}
		}
		requests = append(requests, got)
	}
}

// readByNetHTTP is the same for net/http, which is what core is.
func readByNetHTTP(stream []byte) (requests []reading) {
	r := bufio.NewReaderSize(bytes.NewReader(stream), maxHeader)
	for {
		skipEmptyLines(r)
		q, err := http.ReadRequest(r)
		if err != nil {
			return requests
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return requests
		}
		got := reading{Method: q.Method, Target: q.RequestURI, Host: q.Host, Body: string(body), Fields: map[string][]string{}}
		for key, values := range q.Header {
			name := strings.ToLower(key)
			if name == "cache-control" && q.Header.Get("Pragma") == "no-cache" {
				continue // net/http makes it up
			}
			if !framingFields[name] {
				got.Fields[name] = values
			}
		}
		requests = append(requests, got)
	}
}

// framingFields are told by what else a reading holds, or by how many there are.
var framingFields = map[string]bool{"host": true, "content-length": true, "transfer-encoding": true, "connection": true, "trailer": true}

// skipEmptyLines passes over what may stand before a request line.
func skipEmptyLines(r *bufio.Reader) {
	for {
		next, _ := r.Peek(2)
		switch {
		case bytes.HasPrefix(next, []byte("\n")):
			_, _ = r.Discard(1)
		case bytes.Equal(next, []byte("\r\n")):
			_, _ = r.Discard(2)
		default:
			return
		}
	}
}
