package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"intents.internal/pkg/testkit/endless"
	"intents.internal/pkg/transport"
)

// get requests a URL and reads the body.
func get(t *testing.T, inner http.RoundTripper, url string) (status, size int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.Bound(inner, 1<<20).RoundTrip(request)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, len(body), err
}

// No response outlives the context of its request, whatever the server does with the connection.
func TestBound_EndlessResponses(t *testing.T) {
	t.Parallel()
	inner := &http.Transport{}
	t.Cleanup(inner.CloseIdleConnections)
	endless.WantEnd(t, endless.HTTP, func(_ context.Context, address string) {
		status, size, err := get(t, inner, "http://"+address)
		switched := status == http.StatusSwitchingProtocols && size == 0 && err == nil
		if !switched && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d, %d bytes, %v", status, size, err)
		}
	})
}

// stuck is a transport whose bodies go by no context.
type stuck struct{}

func (stuck) RoundTrip(*http.Request) (*http.Response, error) {
	body, _ := io.Pipe()
	return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
}

func TestBound_BodyOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	if _, _, err := get(t, stuck{}, "http://stuck.example"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
