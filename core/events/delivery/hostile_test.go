package delivery_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/events/delivery"
	"intents.internal/core/events/webhook"
)

// Whatever a URL or a name leads to, no connection is made to an address that must not be called: these attempts end without one.
func TestClient_Send_RefusedAddresses(t *testing.T) {
	t.Parallel()
	names := map[string][][]string{
		"private.example": {{"10.0.0.1"}}, "loopback.example": {{forbidden}}, "metadata.example": {{"169.254.169.254"}},
		"unique-local.example": {{"fd00:ec2::254"}}, "loopback6.example": {{"::1"}}, "mapped.example": {{"::ffff:10.0.0.1"}},
		"nat64.example": {{"64:ff9b::a00:1"}}, "6to4.example": {{"2002:a00:1::1"}}, "any.example": {{"0.0.0.0"}},
		"both.example": {{"192.168.1.1", "fe80::1"}},
	}
	client := delivery.NewClient(delivery.ClientConfig{
		Network: onlyReceiver(t), Resolver: &newNameServer(t, names).Resolver, Now: time.Now,
	})
	t.Cleanup(client.Close)
	for _, host := range []string{
		// IPv4: RFC 1918, loopback, link-local, shared, this network, benchmarking, documentation, multicast, reserved, broadcast, Azure.
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", forbidden, "127.255.255.254", "169.254.169.254", "100.64.0.1",
		"100.100.100.200", "0.0.0.0", "0.1.2.3", "192.0.0.192", "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
		"240.0.0.1", "255.255.255.255", "168.63.129.16",
		// IPv6: loopback, unspecified, link-local, unique local, mapped, compatible, NAT64, 6to4, Teredo, documentation, multicast, site-local.
		"[::1]", "[::]", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]", "[fd00:ec2::254]", "[::ffff:127.0.0.2]", "[::ffff:10.0.0.1]", "[::10.0.0.1]",
		"[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001::1]", "[2001:db8::1]", "[ff02::1]", "[fec0::1]", "[5f00::1]",
		// Names of a name server that leads to such addresses.
		"private.example", "loopback.example", "metadata.example", "unique-local.example", "loopback6.example", "mapped.example",
		"nat64.example", "6to4.example", "any.example", "both.example",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			want := webhook.Attempt{Outcome: webhook.AddressRefused}
			if diff := cmp.Diff(want, send(t, client, "http://"+host+"/")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, url := range []string{"http://1.1.1.1:22/", "https://1.1.1.1:6379/", "http://[2606:4700::1]:8080/"} {
		if got := send(t, client, url); got.Outcome != webhook.AddressRefused {
			t.Errorf("%s: %+v", url, got)
		}
	}
}

// A name that leads to an allowed address first and to another one later is refused at the next connection.
func TestClient_Send_Rebinding(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		w.Header().Set("Connection", "close")
	}))
	t.Cleanup(server.Close)
	resolver := newNameServer(t, map[string][][]string{"rebind.example": {{receiver}, {forbidden}}})
	client := delivery.NewClient(delivery.ClientConfig{Network: onlyReceiver(t), Resolver: &resolver.Resolver, Now: time.Now})
	t.Cleanup(client.Close)
	url := strings.Replace(server.URL, receiver, "rebind.example", 1)
	first, second := send(t, client, url), send(t, client, url)
	if first.Outcome != webhook.Succeeded || second.Outcome != webhook.AddressRefused || served.Load() != 1 {
		t.Errorf("first %+v, then %+v, %d requests served", first, second, served.Load())
	}
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
		want   webhook.Attempt
	}{
		"200":            {raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), webhook.Attempt{Outcome: webhook.Succeeded, ResponseStatus: 200}},
		"204":            {raw("HTTP/1.1 204 No Content\r\n\r\n"), webhook.Attempt{Outcome: webhook.Succeeded, ResponseStatus: 204}},
		"299":            {raw("HTTP/1.1 299 Fine\r\nContent-Length: 0\r\n\r\n"), webhook.Attempt{Outcome: webhook.Succeeded, ResponseStatus: 299}},
		"not modified":   {raw("HTTP/1.1 304 Not Modified\r\n\r\n"), webhook.Attempt{Outcome: webhook.Redirected, ResponseStatus: 304}},
		"410":            {raw("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), webhook.Attempt{Outcome: webhook.OtherStatus, ResponseStatus: 410}},
		"600":            {raw("HTTP/1.1 600 What\r\nContent-Length: 0\r\n\r\n"), webhook.Attempt{Outcome: webhook.OtherStatus, ResponseStatus: 600}},
		"an upgrade":     {raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"), webhook.Attempt{Outcome: webhook.OtherStatus, ResponseStatus: 101}},
		"HTTP/0.9":       {raw("<html>hello</html>\r\n"), webhook.Attempt{Outcome: webhook.Malformed}},
		"SSH":            {raw("SSH-2.0-OpenSSH_9.6\r\n"), webhook.Attempt{Outcome: webhook.Malformed}},
		"nothing":        {raw(""), webhook.Attempt{Outcome: webhook.Malformed}},
		"no status":      {raw("HTTP/1.1 OK\r\n\r\n"), webhook.Attempt{Outcome: webhook.Malformed}},
		"half a header":  {raw("HTTP/1.1 200 OK\r\nContent-Le"), webhook.Attempt{Outcome: webhook.Malformed}},
		"two lengths":    {raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok"), webhook.Attempt{Outcome: webhook.Malformed}},
		"a reset":        {reset, webhook.Attempt{Outcome: webhook.Malformed}},
		"large headers":  {raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"), webhook.Attempt{Outcome: webhook.TooLarge}},
		"many headers":   {raw("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20_000) + "\r\n"), webhook.Attempt{Outcome: webhook.TooLarge}},
		"1xx flood":      {flood("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), webhook.Attempt{Outcome: webhook.TooLarge}},
		"endless body":   {flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\nbody\r\n"), webhook.Attempt{Outcome: webhook.Succeeded, ResponseStatus: 200}},
		"endless error":  {flood("HTTP/1.1 500 No\r\n\r\n", "body"), webhook.Attempt{Outcome: webhook.OtherStatus, ResponseStatus: 500}},
		"gzip bomb":      {raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " + fmt.Sprint(bomb.Len()) + "\r\n\r\n" + bomb.String()), webhook.Attempt{Outcome: webhook.Succeeded, ResponseStatus: 200}},
		"a long promise": {raw("HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nok"), webhook.Attempt{Outcome: webhook.Succeeded, ResponseStatus: 200}},
		"retry later":    {raw("HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n"), webhook.Attempt{Outcome: webhook.OtherStatus, ResponseStatus: 503, RetryAfter: 2 * time.Minute}},
		"retry never":    {raw("HTTP/1.1 429 Busy\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n"), webhook.Attempt{Outcome: webhook.OtherStatus, ResponseStatus: 429}},
		"redirect within": {
			raw("HTTP/1.1 307 Elsewhere\r\nLocation: http://" + forbidden + "/\r\nContent-Length: 0\r\n\r\n"),
			webhook.Attempt{Outcome: webhook.Redirected, ResponseStatus: 307},
		},
		"redirect to a file": {raw("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"), webhook.Attempt{Outcome: webhook.Redirected, ResponseStatus: 302}},
		// These end by a time limit.
		"slow headers": {drip("HTTP/1.1 200 OK\r\n", "X: y\r\n"), webhook.Attempt{Outcome: webhook.TimedOut}},
		"slow body":    {drip("HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n", "x"), webhook.Attempt{Outcome: webhook.Succeeded, ResponseStatus: 200}},
		"silence":      {silence, webhook.Attempt{Outcome: webhook.TimedOut}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := delivery.NewClient(delivery.ClientConfig{Network: onlyReceiver(t), Now: time.Now})
			t.Cleanup(client.Close)
			if diff := cmp.Diff(c.want, send(t, client, listen(t, c.answer))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// No connection can be made.
func TestClient_Send_NotConnected(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", receiver+":0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	_ = listener.Close()
	resolver := newNameServer(t, map[string][][]string{"empty.example": {{}}})
	client := delivery.NewClient(delivery.ClientConfig{Network: onlyReceiver(t), Resolver: &resolver.Resolver, Now: time.Now})
	for _, url := range []string{closed, "http://unknown.example/", "http://empty.example/", "http://2130706434/", "http://0x7f000002/", "http://0177.0.0.2/", "http://127.2/"} {
		if got := send(t, client, url); got.Outcome != webhook.NotConnected {
			t.Errorf("%s: %+v", url, got)
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
