package delivery_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"intents.internal/core/events/delivery"
	"intents.internal/core/events/webhook"
)

// A certificate that does not prove the name is no receiver.
func TestClient_Send_HostileTLS(t *testing.T) {
	t.Parallel()
	trusted, other := newAuthority(t), newAuthority(t)
	fresh, now := time.Now().Add(time.Hour), time.Now()
	resolver := newNameServer(t, map[string][][]string{"hooks.example": {{receiver}}})
	client := delivery.NewClient(delivery.ClientConfig{Network: onlyReceiver(t), Resolver: &resolver.Resolver, Roots: trusted.pool, Now: time.Now})
	t.Cleanup(client.Close)
	for name, c := range map[string]struct {
		config *tls.Config
		want   webhook.Outcome
	}{
		"valid":       {&tls.Config{Certificates: trusted.issue(t, "hooks.example", fresh)}, webhook.Succeeded},
		"over HTTP/2": {&tls.Config{Certificates: trusted.issue(t, "hooks.example", fresh), NextProtos: []string{"h2"}}, webhook.Succeeded},
		"expired":     {&tls.Config{Certificates: trusted.issue(t, "hooks.example", now.Add(-time.Minute))}, webhook.BadTLS},
		"wrong name":  {&tls.Config{Certificates: trusted.issue(t, "other.example", fresh)}, webhook.BadTLS},
		"self-signed": {&tls.Config{Certificates: other.issue(t, "hooks.example", fresh)}, webhook.BadTLS},
		"old TLS": {&tls.Config{
			Certificates: trusted.issue(t, "hooks.example", fresh), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
		}, webhook.BadTLS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			server.TLS, server.EnableHTTP2 = c.config, true
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.StartTLS()
			t.Cleanup(server.Close)
			if got := send(t, client, strings.Replace(server.URL, receiver, "hooks.example", 1)); got.Outcome != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
	plain := strings.Replace(listen(t, raw("HTTP/1.1 200 OK\r\n\r\n")), "http://"+receiver, "https://hooks.example", 1)
	if got := send(t, client, plain); got.Outcome != webhook.BadTLS {
		t.Errorf("without TLS: %+v", got)
	}
}

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &authority{pool: x509.NewCertPool()}
	a.certificate, a.key = signCertificate(t, template, template, nil)
	a.pool.AddCert(a.certificate)
	return a
}

func (a *authority) issue(t *testing.T, name string, until time.Time) []tls.Certificate {
	t.Helper()
	certificate, key := signCertificate(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
	}, a.certificate, a.key)
	return []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}}
}

// signCertificate makes a certificate and its key; without a signer it signs itself.
func signCertificate(t *testing.T, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}
