package webhooks_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/endless"
)

// newClient returns a client that may call receiver besides public addresses.
func newClient(t *testing.T) *webhooks.Client {
	t.Helper()
	client := webhooks.NewClient(onlyReceiver(), time.Now)
	t.Cleanup(client.Close)
	return client
}

func send(t *testing.T, client *webhooks.Client, url string) webhooks.Attempt {
	t.Helper()
	a := client.Send(t.Context(), webhooks.Message{URL: url, ID: "evt_1", Body: []byte(`{}`), Secrets: []webhooks.Secret{webhooks.NewSecret()}})
	a.EndedAt, a.Duration, a.ResponseBody = time.Time{}, 0, ""
	return a
}

// answers are what a receiver sends back, byte by byte, and what is recorded of it.
func TestClient_Send_HostileResponses(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, _ = io.CopyN(zip, zeros{}, 64<<20)
	_ = zip.Close()
	for name, c := range map[string]struct {
		answer func(net.Conn)
		want   webhooks.Attempt
	}{
		"200":            {raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), webhooks.Attempt{Outcome: webhooks.Succeeded, ResponseStatus: 200}},
		"204":            {raw("HTTP/1.1 204 No Content\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.Succeeded, ResponseStatus: 204}},
		"299":            {raw("HTTP/1.1 299 Fine\r\nContent-Length: 0\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.Succeeded, ResponseStatus: 299}},
		"not modified":   {raw("HTTP/1.1 304 Not Modified\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.Redirected, ResponseStatus: 304}},
		"410":            {raw("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: 410}},
		"600":            {raw("HTTP/1.1 600 What\r\nContent-Length: 0\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: 600}},
		"an upgrade":     {raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: 101}},
		"HTTP/0.9":       {raw("<html>hello</html>\r\n"), webhooks.Attempt{Outcome: webhooks.Malformed}},
		"SSH":            {raw("SSH-2.0-OpenSSH_9.6\r\n"), webhooks.Attempt{Outcome: webhooks.Malformed}},
		"nothing":        {raw(""), webhooks.Attempt{Outcome: webhooks.Malformed}},
		"no status":      {raw("HTTP/1.1 OK\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.Malformed}},
		"half a header":  {raw("HTTP/1.1 200 OK\r\nContent-Le"), webhooks.Attempt{Outcome: webhooks.Malformed}},
		"two lengths":    {raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok"), webhooks.Attempt{Outcome: webhooks.Malformed}},
		"a reset":        {reset, webhooks.Attempt{Outcome: webhooks.Malformed}},
		"large headers":  {raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.TooLarge}},
		"many headers":   {raw("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20_000) + "\r\n"), webhooks.Attempt{Outcome: webhooks.TooLarge}},
		"1xx flood":      {flood("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.TooLarge}},
		"endless body":   {flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\nbody\r\n"), webhooks.Attempt{Outcome: webhooks.Succeeded, ResponseStatus: 200}},
		"endless error":  {flood("HTTP/1.1 500 No\r\n\r\n", "body"), webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: 500}},
		"gzip bomb":      {raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " + fmt.Sprint(bomb.Len()) + "\r\n\r\n" + bomb.String()), webhooks.Attempt{Outcome: webhooks.Succeeded, ResponseStatus: 200}},
		"a long promise": {raw("HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nok"), webhooks.Attempt{Outcome: webhooks.Succeeded, ResponseStatus: 200}},
		"retry later":    {raw("HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: 503, RetryAfter: 2 * time.Minute}},
		"retry never":    {raw("HTTP/1.1 429 Busy\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: 429}},
		"redirect within": {
			raw("HTTP/1.1 307 Elsewhere\r\nLocation: http://" + forbidden + "/\r\nContent-Length: 0\r\n\r\n"),
			webhooks.Attempt{Outcome: webhooks.Redirected, ResponseStatus: 307},
		},
		"redirect to a file": {raw("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"), webhooks.Attempt{Outcome: webhooks.Redirected, ResponseStatus: 302}},
		// These end by a time limit.
		"slow headers": {drip("HTTP/1.1 200 OK\r\n", "X: y\r\n"), webhooks.Attempt{Outcome: webhooks.TimedOut}},
		"slow body":    {drip("HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n", "x"), webhooks.Attempt{Outcome: webhooks.Succeeded, ResponseStatus: 200}},
		"silence":      {silence, webhooks.Attempt{Outcome: webhooks.TimedOut}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t)
			if limit := client.SetTimeout(2 * time.Second); limit != 15*time.Second {
				t.Errorf("an attempt may take %s", limit)
			}
			if diff := cmp.Diff(c.want, send(t, client, listen(t, c.answer))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Without a response, the outcome says how far the attempt got.
func TestClient_Send_NoResponse(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", receiver+":0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	_ = listener.Close()
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	client := newClient(t)
	for url, want := range map[string]webhooks.Outcome{
		"http://" + forbidden + "/": webhooks.AddressRefused, "http://1.1.1.1:22/": webhooks.AddressRefused,
		closed: webhooks.NotConnected, untrusted.URL: webhooks.BadTLS, strings.Replace(listen(t, raw("HTTP/1.1 200 OK\r\n\r\n")), "http:", "https:", 1): webhooks.BadTLS,
	} {
		if got := send(t, client, url); got != (webhooks.Attempt{Outcome: want}) {
			t.Errorf("%s: %+v, want %s", url, got, want)
		}
	}
}

// zeros is an endless file of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// listen serves one connection after the other: it reads a request's header and answers.
func listen(t *testing.T, answer func(net.Conn)) (url string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", receiver+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if _, err := conn.Read(make([]byte, 4096)); err == nil {
					answer(conn)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// raw answers with these bytes.
func raw(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// flood answers with a beginning and then the last text again and again.
func flood(texts ...string) func(net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, strings.Join(texts, ""))
		for more := strings.Repeat(texts[len(texts)-1], 100); err == nil; {
			_, err = io.WriteString(c, more)
		}
	}
}

// drip answers with a beginning and then a little every 100 ms.
func drip(begin, little string) func(net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, begin)
		for ticker := time.NewTicker(100 * time.Millisecond); err == nil; <-ticker.C {
			_, err = io.WriteString(c, little)
		}
	}
}

// silence waits for the client to go.
func silence(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// reset closes the connection with a TCP reset.
func reset(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }

// A receiver cannot hold an attempt for longer than its context.
func TestClient_Send_EndlessResponses(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	endless.WantEnd(t, endless.HTTP, func(ctx context.Context, address string) {
		client.Send(ctx, webhooks.Message{URL: "http://" + address, ID: "evt_1", Body: []byte(`{}`), Secrets: []webhooks.Secret{webhooks.NewSecret()}})
	})
}
