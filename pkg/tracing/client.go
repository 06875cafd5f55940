package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"time"

	"intents.internal/pkg/settings"
	"intents.internal/pkg/transport"
)

const (
	// handshakeTimeout bounds the TLS handshake with the collector.
	handshakeTimeout = 5 * time.Second
	// idleTimeout is how long an idle connection to the collector is kept.
	idleTimeout = 90 * time.Second
)

// newClient creates the client of exports. The OpenTelemetry SDK's own waits without end for what follows a 101 of the collector, and
// exports one batch at a time.
func newClient() (*http.Client, error) {
	var faults settings.Faults
	trust := tlsConfig(&faults)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return &http.Client{Timeout: exportTimeout, Transport: transport.Bound(&http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout,
		ForceAttemptHTTP2: true,
	}, 0)}, nil
}

// tlsConfig reads the files that OpenTelemetry's variables name, which the SDK reads only for a client of its own.
func tlsConfig(faults *settings.Faults) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if variable, path := exporterVariable("CERTIFICATE"); path != "" {
		roots, err := readRoots(path)
		faults.AddError(variable, err)
		config.RootCAs = roots
	}
	variable, certificate := exporterVariable("CLIENT_CERTIFICATE")
	_, key := exporterVariable("CLIENT_KEY")
	switch {
	case certificate != "" && key != "":
		pair, err := tls.LoadX509KeyPair(certificate, key)
		faults.AddError(variable, err)
		config.Certificates = []tls.Certificate{pair}
	case certificate != "" || key != "":
		faults.Add(variable, "and the variable of its key must be set together")
	}
	return config
}

// exporterVariable returns a variable of the exporter and its value: the one for traces where that is set, else the one for all signals.
func exporterVariable(name string) (variable, value string) {
	variable = "OTEL_EXPORTER_OTLP_TRACES_" + name
	if os.Getenv(variable) == "" {
		variable = "OTEL_EXPORTER_OTLP_" + name
	}
	return variable, os.Getenv(variable)
}

func readRoots(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("has no certificate in PEM")
	}
	return roots, nil
}
