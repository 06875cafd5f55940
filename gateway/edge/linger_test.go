package edge_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
)

// A client that sends far too much reads why it was refused, although the answer comes long before the body's end.
func TestLinger_LargeBody(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
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
		if diff := cmp.Diff(tooLong().Body, scrubRequestID(string(text), response.Header.Get("X-Request-Id"))); diff != "" || response.StatusCode != 413 {
			t.Fatalf("status %d: %s", response.StatusCode, diff)
		}
	}
	if got := core.Requests(); len(got) > 0 {
		t.Errorf("core received %v", got)
	}
}

// A client need not wait for 100 Continue (RFC 9110 section 10.1.1): with its body on the way, the refusal must not be lost to a reset.
func TestLinger_RefusedExpectation(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	body := strings.Repeat(" ", 60<<10)
	head := fmt.Sprintf("POST /v2/transfers HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	want := noKey()
	want.Header.Set("Connection", "close")
	resets := 0
	const rounds = 200
	for range rounds {
		c := g.dial(t)
		_, err := io.WriteString(c, head)
		for rest := body; err == nil && rest != ""; rest = rest[4<<10:] {
			_, err = io.WriteString(c, rest[:4<<10])
		}
		if err != nil {
			resets++
			_ = c.Close()
			continue
		}
		if diff := cmp.Diff(want, c.read(t, "POST")); diff != "" {
			t.Fatal(diff)
		}
		if _, err := c.reader.ReadByte(); !errors.Is(err, io.EOF) {
			resets++
		}
		_ = c.Close()
	}
	if resets > 0 {
		t.Errorf("%d of %d connections were reset", resets, rounds)
	}
	if got := core.Requests(); len(got) > 0 {
		t.Errorf("core received %v", got)
	}
}

// A client that never ends its request is waited for no longer than a moment.
func TestLinger_Bounded(t *testing.T) {
	t.Parallel()
	g := start(t, coretest.Start(t, nil))
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
