package outbound_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/core/outbound"
	"intents.internal/pkg/testkit/endless"
	"intents.internal/pkg/transport"
)

// receiver is the one loopback address that the tests' networks allow; forbidden is another.
const (
	receiver  = "127.0.0.1"
	forbidden = "127.0.0.2"
)

// onlyReceiver are the networks with receiver besides public addresses.
func onlyReceiver() *outbound.Networks {
	return outbound.NewNetworks([]netip.Prefix{netip.MustParsePrefix(receiver + "/32")})
}

func newClient(t *testing.T, config outbound.Config) *http.Client {
	t.Helper()
	client := outbound.NewClient(config)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// get requests a URL and reads the body.
func get(t *testing.T, client *http.Client, url string) (status int, body []byte, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

func serve(t *testing.T, handle http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

// No connection is made to an address that must not be called, whatever URL or name leads to it.
func TestClient_RefusedAddresses(t *testing.T) {
	t.Parallel()
	names := map[string][][]string{
		"private.example": {{"10.0.0.1"}}, "loopback.example": {{forbidden}}, "metadata.example": {{"169.254.169.254"}},
		"unique-local.example": {{"fd00:ec2::254"}}, "loopback6.example": {{"::1"}}, "mapped.example": {{"::ffff:10.0.0.1"}},
		"nat64.example": {{"64:ff9b::a00:1"}}, "6to4.example": {{"2002:a00:1::1"}}, "any.example": {{"0.0.0.0"}},
		"both.example": {{"192.168.1.1", "fe80::1"}},
	}
	client := newClient(t, outbound.Config{Networks: onlyReceiver(), Resolver: &newNameServer(t, names).Resolver})
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
			if _, _, err := get(t, client, "http://"+host+"/"); !errors.Is(err, outbound.ErrAddressNotAllowed) {
				t.Error(err)
			}
		})
	}
	for _, url := range []string{"http://1.1.1.1:22/", "https://1.1.1.1:6379/", "http://[2606:4700::1]:8080/"} {
		if _, _, err := get(t, client, url); !errors.Is(err, outbound.ErrAddressNotAllowed) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A host in another form than four decimal numbers is a name, and no address.
func TestClient_Names(t *testing.T) {
	t.Parallel()
	resolver := newNameServer(t, map[string][][]string{"empty.example": {{}}})
	client := newClient(t, outbound.Config{Networks: onlyReceiver(), Resolver: &resolver.Resolver})
	for _, host := range []string{"unknown.example", "empty.example", "2130706434", "0x7f000002", "0177.0.0.2", "127.2"} {
		_, _, err := get(t, client, "http://"+host+"/")
		if _, ok := errors.AsType[*net.DNSError](err); !ok {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// A name that leads to an allowed address first and to another one later is refused at the next connection.
func TestClient_Rebinding(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		w.Header().Set("Connection", "close")
	})
	resolver := newNameServer(t, map[string][][]string{"rebind.example": {{receiver}, {forbidden}}})
	client := newClient(t, outbound.Config{Networks: onlyReceiver(), Resolver: &resolver.Resolver})
	url = strings.Replace(url, receiver, "rebind.example", 1)
	_, _, first := get(t, client, url)
	_, _, second := get(t, client, url)
	if first != nil || !errors.Is(second, outbound.ErrAddressNotAllowed) || served.Load() != 1 {
		t.Errorf("first %v, then %v, %d requests served", first, second, served.Load())
	}
}

// Without networks every address is dialled: an operator's own node may be at a private one.
func TestClient_AllNetworks(t *testing.T) {
	t.Parallel()
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	if _, _, err := get(t, newClient(t, outbound.Config{}), url); err != nil {
		t.Error(err)
	}
}

func TestClient_Redirect(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			followed.Store(true)
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	if status, _, err := get(t, newClient(t, outbound.Config{}), url); status != http.StatusTemporaryRedirect || err != nil || followed.Load() {
		t.Errorf("%d, %v; followed: %t", status, err, followed.Load())
	}
}

func TestClient_IgnoresProxyOfEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://"+forbidden+":1")
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	resolver := newNameServer(t, map[string][][]string{"named.example": {{receiver}}}) // net/http uses no proxy for literal loopback addresses
	client := newClient(t, outbound.Config{Resolver: &resolver.Resolver})
	if _, _, err := get(t, client, strings.Replace(url, receiver, "named.example", 1)); err != nil {
		t.Error(err)
	}
}

// The bound of a body counts the decompressed bytes.
func TestClient_MaxBody(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write(make([]byte, 1<<20))
	_ = zip.Close()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/zipped" {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
			return
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	client := newClient(t, outbound.Config{MaxBody: 5})
	for path, want := range map[string]string{"/1234": "/1234", "/12345": "/1234", "/zipped": string(make([]byte, 5))} {
		_, body, err := get(t, client, url+path)
		if tooLarge := errors.Is(err, transport.ErrBodyTooLarge); string(body) != want || tooLarge != (path != "/1234") {
			t.Errorf("%s: %q, %v", path, body, err)
		}
	}
}

// The time limit includes the body.
func TestClient_Timeout(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	client := newClient(t, outbound.Config{Timeout: 100 * time.Millisecond})
	for _, path := range []string{"/header", "/body"} {
		if _, _, err := get(t, client, url+path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A certificate must be valid, be for the name and come from a trusted authority.
func TestClient_TLS(t *testing.T) {
	t.Parallel()
	trusted, other := newAuthority(t), newAuthority(t)
	fresh, now := time.Now().Add(time.Hour), time.Now()
	resolver := newNameServer(t, map[string][][]string{"hooks.example": {{receiver}}})
	client := newClient(t, outbound.Config{Networks: onlyReceiver(), Resolver: &resolver.Resolver, Roots: trusted.pool})
	expired := func(err error) bool {
		invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
		return ok && invalid.Reason == x509.Expired
	}
	wrongName := func(err error) bool { _, ok := errors.AsType[x509.HostnameError](err); return ok }
	unknown := func(err error) bool { _, ok := errors.AsType[x509.UnknownAuthorityError](err); return ok }
	oldTLS := func(err error) bool {
		_, ok := errors.AsType[*net.OpError](err)
		return ok && strings.Contains(err.Error(), "protocol version")
	}
	succeeds := func(err error) bool { return err == nil }
	for name, c := range map[string]struct {
		config *tls.Config
		want   func(error) bool
	}{
		"valid":       {&tls.Config{Certificates: trusted.issue(t, "hooks.example", fresh)}, succeeds},
		"over HTTP/2": {&tls.Config{Certificates: trusted.issue(t, "hooks.example", fresh), NextProtos: []string{"h2"}}, succeeds},
		"expired":     {&tls.Config{Certificates: trusted.issue(t, "hooks.example", now.Add(-time.Minute))}, expired},
		"wrong name":  {&tls.Config{Certificates: trusted.issue(t, "other.example", fresh)}, wrongName},
		"self-signed": {&tls.Config{Certificates: other.issue(t, "hooks.example", fresh)}, unknown},
		"old TLS": {&tls.Config{
			Certificates: trusted.issue(t, "hooks.example", fresh), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
		}, oldTLS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			server.TLS, server.EnableHTTP2 = c.config, true
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.StartTLS()
			t.Cleanup(server.Close)
			if _, _, err := get(t, client, strings.Replace(server.URL, receiver, "hooks.example", 1)); !c.want(err) {
				t.Error(err)
			}
		})
	}
}

func TestParsePrefixes(t *testing.T) {
	t.Parallel()
	allowed, err := outbound.ParsePrefixes(" 10.1.0.0/16,127.0.0.1/32 , fd00::/8,")
	if err != nil || len(allowed) != 3 {
		t.Fatal(allowed, err)
	}
	networks := outbound.NewNetworks(allowed)
	if err := networks.Check(netip.MustParseAddrPort("10.1.2.3:1")); err != nil {
		t.Error(err)
	}
	if err := networks.WithoutPublic().Check(netip.MustParseAddrPort("10.1.2.3:1")); err != nil {
		t.Error(err)
	}
	if err := networks.WithoutPublic().Check(netip.MustParseAddrPort("1.1.1.1:80")); !errors.Is(err, outbound.ErrAddressNotAllowed) {
		t.Errorf("a public address where none is wanted: %v", err)
	}
	for _, text := range []string{"10.0.0.1", "10.0.0.1/8", "a", "10.0.0.0/8;11.0.0.0/8", "::ffff:10.0.0.0/104"} {
		if _, err := outbound.ParsePrefixes(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"7200": 2 * time.Hour, "9999999": 9999999 * time.Second, "0": 0, "-1": 0, "soon": 0, "": 0, "1.5": 0, "99999999999999999999": 0,
		now.Add(3 * time.Hour).Format(http.TimeFormat): 3 * time.Hour, now.Add(-time.Hour).Format(http.TimeFormat): 0,
	} {
		if got := outbound.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// No response outlives the time limit of its request, whatever the server does with the connection.
func TestClient_EndlessResponses(t *testing.T) {
	t.Parallel()
	client := newClient(t, outbound.Config{Timeout: 300 * time.Millisecond})
	endless.WantEnd(t, endless.HTTP, func(_ context.Context, address string) {
		status, body, err := get(t, client, "http://"+address)
		switched := status == http.StatusSwitchingProtocols && len(body) == 0 && err == nil
		if !switched && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d, %d bytes, %v", status, len(body), err)
		}
	})
}
