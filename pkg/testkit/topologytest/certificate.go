package topologytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificate is for servers on 127.0.0.1, signed by its own certificate authority.
type Certificate struct {
	// Authority is the file of the authority's certificate, which SSL_CERT_FILE must name for a client to trust it.
	Authority string

	cert, key string
	pool      *x509.CertPool
}

// NewCertificate creates one in the directory, valid for an hour.
func NewCertificate(dir string) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's Redis"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	c := &Certificate{
		Authority: filepath.Join(dir, "redis.crt"), cert: filepath.Join(dir, "redis.crt"), key: filepath.Join(dir, "redis.key"),
		pool: x509.NewCertPool(),
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	if !c.pool.AppendCertsFromPEM(certificate) {
		return nil, fmt.Errorf("the certificate just made cannot be read")
	}
	if err := os.WriteFile(c.cert, certificate, 0o600); err != nil {
		return nil, err
	}
	return c, os.WriteFile(c.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600)
}
