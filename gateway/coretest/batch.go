package coretest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"

	"intents.internal/pkg/wire"
)

// Batch is the handler of wire.PathBatch: next answers each request as if it had come alone, and each response is sent once it is there. A
// handler that panics leaves its request without a response.
func Batch(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		messages, err := wire.SplitBatch(body)
		if err != nil {
			w.Header().Set(wire.HeaderCore, wire.CoreRefused)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		broken := false
		for number, message := range messages {
			all.Go(func() {
				response := answerTo(next, r, message)
				mu.Lock()
				defer mu.Unlock()
				if response == nil {
					broken = true
					return
				}
				_, _ = w.Write(wire.AppendFrame(nil, number, response))
				_ = http.NewResponseController(w).Flush()
			})
		}
		all.Wait()
		if broken {
			panic(http.ErrAbortHandler)
		}
	}
}

// messageKey is the context's key of a request's message in a batch.
type messageKey struct{}

// answerTo is the message of the response to one request of a batch, nil if the handler panics.
func answerTo(next http.Handler, batch *http.Request, message []byte) (response []byte) {
	request, err := RequestOf(message)
	if err != nil {
		return nil
	}
	request.Header.Set(wire.HeaderGatewaySecret, batch.Header.Get(wire.HeaderGatewaySecret))
	recorder := httptest.NewRecorder()
	defer func() {
		if recover() != nil {
			response = nil
		}
	}()
	next.ServeHTTP(recorder, request.WithContext(context.WithValue(batch.Context(), messageKey{}, message)))
	response = wire.AppendField(nil, wire.FieldStatus, strconv.Itoa(recorder.Code))
	for name, values := range recorder.Result().Header {
		for _, value := range values {
			response = wire.AppendField(response, name, value)
		}
	}
	return wire.AppendBody(response, recorder.Body.Bytes())
}

// RequestOf is the request in a message, which must have a method and a path.
func RequestOf(message []byte) (*http.Request, error) {
	fields := http.Header{}
	for {
		name, value, rest, err := wire.NextField(message)
		if err != nil {
			return nil, err
		}
		if message = rest; len(name) == 0 {
			break
		}
		fields.Add(string(name), string(value))
	}
	request := httptest.NewRequest(fields.Get(wire.FieldMethod), fields.Get(wire.FieldPath), bytes.NewReader(message)) //nolint:noctx // it gets one
	delete(fields, wire.FieldMethod)
	delete(fields, wire.FieldPath)
	request.Header = fields
	return request, nil
}
