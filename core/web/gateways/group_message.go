package gateways

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"intents.internal/core/web/api"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

var (
	errGroup        = route.NewError(http.StatusBadRequest, wire.InvalidRequest, "The batch is malformed; none of its requests was carried out.")
	errGroupVersion = route.NewError(
		http.StatusNotFound, wire.NotFound, "This core serves no batches of this version; none of its requests was carried out.",
	)
)

// urlCreate is the URL of the requests in a group without a query, which nothing changes.
var urlCreate = &url.URL{Path: api.PathCreate}

// readGroup reads all requests. One of another route is an error.
func readGroup(r *http.Request) ([]*http.Request, error) {
	if r.ContentLength < 0 || r.ContentLength > wire.MaxBatchBytes {
		return nil, errGroup
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, err
	}
	messages, err := wire.SplitBatch(body)
	if err != nil {
		return nil, err
	}
	requests := make([]*http.Request, len(messages))
	for n, message := range messages {
		if requests[n], err = readRequest(string(message)); err != nil {
			return nil, err
		}
		requests[n].Pattern, requests[n].RemoteAddr = api.PatternCreate, r.RemoteAddr
	}
	return requests, nil
}

// usualFields has room for the header fields of a usual request.
const usualFields = 16

// readRequest reads the request in a message.
func readRequest(message string) (*http.Request, error) {
	r := &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header, usualFields)}
	values := make([]string, 0, usualFields) // one allocation for the slices of all fields
	for {
		name, value, rest, err := wire.NextField(message)
		if err != nil {
			return nil, err
		}
		message = rest
		switch name {
		case "":
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(rest)), int64(len(rest))
			return r, setURL(r)
		case wire.FieldMethod:
			r.Method = value
		case wire.FieldPath:
			r.RequestURI = value
		default:
			name = http.CanonicalHeaderKey(name)
			if given := r.Header[name]; given != nil {
				r.Header[name] = append(given, value)
				continue
			}
			values = append(values, value)
			r.Header[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
}

// setURL sets the URL of a request in a group, which must be one of PatternCreate.
func setURL(r *http.Request) (err error) {
	if r.URL = urlCreate; r.RequestURI != api.PathCreate {
		if r.URL, err = url.ParseRequestURI(r.RequestURI); err != nil {
			return err
		}
	}
	if r.Method != http.MethodPost || r.URL.Path != api.PathCreate {
		return errGroup
	}
	return nil
}

// response is an http.ResponseWriter that makes the message of a response.
type response struct {
	header  http.Header
	message *route.Buffer
	status  int
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	if r.status != 0 {
		return
	}
	r.status, r.message = status, route.NewBuffer()
	b := wire.AppendField(r.message.Bytes, wire.FieldStatus, strconv.Itoa(status))
	for name, values := range r.header {
		if name == "Cache-Control" && values[0] == "no-store" {
			continue // the gateway says it where core says nothing
		}
		for _, value := range values {
			b = wire.AppendField(b, name, value)
		}
	}
	r.message.Bytes = wire.AppendBody(b, "") // the body follows
}

func (r *response) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.message.Bytes = append(r.message.Bytes, b...)
	return len(b), nil
}
