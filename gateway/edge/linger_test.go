package edge_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
)

// Whoever sends far too much reads why it was refused, although the answer comes long before the body's end.
func TestRefusalOfALargeBodyArrives(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core, settings{})
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	body := bytes.Repeat([]byte(" "), 1<<20)
	for range 50 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.address+"/auth/api-key/create", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"code":"PAYLOAD_TOO_LARGE","message":"The body is too long."}`, string(text)); diff != "" || response.StatusCode != 413 {
			t.Fatalf("status %d: %s", response.StatusCode, diff)
		}
	}
	if got := core.Requests(); len(got) > 0 {
		t.Errorf("core received %v", got)
	}
}

// A client that never ends its request is waited for no longer than a moment.
func TestLingeringEnds(t *testing.T) {
	t.Parallel()
	g := start(t, coretest.Start(t, nil), settings{})
	c := g.dial(t)
	defer c.Close()
	c.write(t, "POST /v2/transfers HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n")
	if got := c.read(t, "POST"); got.Status != 413 {
		t.Fatalf("%+v", got)
	}
	began := time.Now()
	for _, err := c.Write([]byte(" ")); err == nil; _, err = c.Write([]byte(" ")) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the connection still takes bytes")
		}
	}
}
