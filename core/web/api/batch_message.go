package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"

	"intents.internal/pkg/wire"
)

var errBatch = newError(http.StatusBadRequest, wire.InvalidRequest, "The batch is malformed; none of its requests was carried out.")

// patternCreate is the route of the requests in a batch.
const patternCreate = "POST /v2/transfers"

// readBatch reads and parses all requests. Another one than POST /v2/transfers is an error.
func readBatch(r *http.Request) ([]*http.Request, error) {
	if r.ContentLength < 0 || r.ContentLength > wire.MaxBatchBytes {
		return nil, errBatch
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
	reader := bufio.NewReader(nil)
	for n, message := range messages {
		if requests[n], err = parseRequest(reader, message); err != nil {
			return nil, err
		}
		requests[n].Pattern, requests[n].RemoteAddr = patternCreate, r.RemoteAddr
	}
	return requests, nil
}

// parseRequest parses a message that is one request, with its body.
func parseRequest(reader *bufio.Reader, message []byte) (*http.Request, error) {
	at := bytes.Index(message, []byte("\r\n\r\n"))
	if at < 0 {
		return nil, errBatch
	}
	head, body := message[:at+4], message[at+4:]
	reader.Reset(bytes.NewReader(head))
	request, err := http.ReadRequest(reader)
	if err != nil {
		return nil, err
	}
	if request.ContentLength != int64(len(body)) || request.Method != http.MethodPost || request.URL.Path != "/v2/transfers" {
		return nil, errBatch
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	return request, nil
}

// response is an http.ResponseWriter that makes an HTTP/1.1 message, for handlers that say how long their body is.
type response struct {
	header  http.Header
	message *buffer
	status  int
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	if r.status != 0 {
		return
	}
	r.status, r.message = status, newBuffer()
	head := bytes.NewBuffer(r.message.json)
	fmt.Fprintf(head, "HTTP/1.1 %d \r\n", status)
	_ = r.header.Write(head) // to memory
	head.WriteString("\r\n")
	r.message.json = head.Bytes()
}

func (r *response) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.message.json = append(r.message.json, b...)
	return len(b), nil
}
