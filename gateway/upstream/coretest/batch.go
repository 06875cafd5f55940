package coretest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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

// answerTo is the response to one request of a batch as an HTTP/1.1 message, nil if the handler panics.
func answerTo(next http.Handler, batch *http.Request, message []byte) (response []byte) {
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(message)))
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
	result := recorder.Result()
	defer result.Body.Close()
	result.ContentLength = int64(recorder.Body.Len())
	var encoded bytes.Buffer
	_ = result.Write(&encoded) // to memory
	return encoded.Bytes()
}
