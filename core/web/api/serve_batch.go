package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"sync"

	"intents.internal/pkg/wire"
)

var errBatch = newError(http.StatusBadRequest, wire.InvalidRequest, "The batch is malformed; none of its requests was carried out.")

// serveBatch returns the handler of POST /internal/batch: handler answers each request as if it had come alone, all at the same time.
// Responses are written once they are there: a refusal does not wait for the rows of others, and rows of one commit share one write.
func (s *Server) serveBatch(handler http.Handler) http.HandlerFunc {
	pool := newWorkers()
	return func(w http.ResponseWriter, r *http.Request) {
		requests, err := readBatch(r)
		if err != nil {
			writeError(w, errBatch)
			return
		}
		out := &batchWriter{to: w, left: len(requests)}
		var all sync.WaitGroup
		for number, request := range requests {
			all.Add(1)
			pool.run(func() {
				defer all.Done()
				out.add(number, respond(handler, request))
			})
		}
		all.Wait()
		if out.broken {
			panic(http.ErrAbortHandler)
		}
	}
}

// readBatch reads and parses all requests. Another one than POST /v2/transfers is an error.
func readBatch(r *http.Request) ([]*http.Request, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxBatchBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > wire.MaxBatchBytes {
		return nil, errBatch
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
		requests[n] = requests[n].WithContext(r.Context())
		requests[n].RemoteAddr = r.RemoteAddr
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

// respond returns the handler's response as an HTTP/1.1 message in a buffer to release, or nil if it broke off.
func respond(handler http.Handler, r *http.Request) (message *buffer) {
	response := &response{header: http.Header{}, message: newBuffer()}
	defer func() {
		if panicked := recover(); panicked != nil { // http.ErrAbortHandler: route has recovered from all others
			message = nil
		}
	}()
	handler.ServeHTTP(response, r)
	return response.message
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
	r.status = status
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

// batchWriter writes responses as frames. Whoever adds one while nobody writes becomes the writer, and writes what others add meanwhile.
type batchWriter struct {
	to http.ResponseWriter

	mu      sync.Mutex
	frames  []byte
	left    int
	writing bool
	started bool
	// broken is set if a response broke off, or could not be written.
	broken bool
}

// add adds a response, nil for one that broke off, and releases it.
func (w *batchWriter) add(number int, message *buffer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
	if message == nil {
		w.broken = true
	} else {
		w.frames = wire.AppendFrame(w.frames, number, message.json)
		message.release()
	}
	if w.writing {
		return
	}
	w.writing = true
	for len(w.frames) > 0 {
		w.mu.Unlock()
		// The requests whose rows were in the same commit run first, so that their responses join this write.
		runtime.Gosched()
		runtime.Gosched()
		w.mu.Lock()
		frames, last := w.frames, w.left == 0 && !w.broken
		w.frames = nil
		w.mu.Unlock()
		err := w.write(frames, last)
		w.mu.Lock()
		w.broken = w.broken || err != nil
	}
	w.writing = false
}

// write writes frames to the client at once. last says that no others follow.
func (w *batchWriter) write(frames []byte, last bool) error {
	if !w.started {
		w.started = true
		w.to.Header().Set("Content-Type", "application/octet-stream")
		if last {
			w.to.Header().Set("Content-Length", strconv.Itoa(len(frames)))
		}
	}
	_, err := w.to.Write(frames)
	if err == nil && !last {
		err = http.NewResponseController(w.to).Flush()
	}
	return err
}
