package rpc_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"intents.internal/core/rpc"
)

// repeating answers with the URL it was asked for, as a proxy's page of an error does.
func repeating(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Location", r.URL.String())
	w.WriteHeader(http.StatusTemporaryRedirect)
	fmt.Fprintf(w, `{"error":{"code":1,"message":"%s %s %s"}}`, r.URL, r.Header.Get("Authorization"), strings.Repeat(secretPath, 10))
}

func TestProvider_Secrets(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(repeating))
	t.Cleanup(server.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 "+r.URL.String()+"\r\n\r\n")
			_ = conn.Close()
		}
	}))
	t.Cleanup(broken.Close)
	registry := prometheus.NewRegistry()
	for _, address := range []string{server.URL, closed.URL, broken.URL} {
		p := provider(t, address, rpc.Options{Registry: prometheus.WrapRegistererWith(prometheus.Labels{"of": address}, registry)})
		call := rpc.BlockByNumber(rpc.Latest)
		err := p.Do(t.Context(), call)
		if address == closed.URL && !errors.Is(err, rpc.ErrTransport) {
			t.Errorf("no connection: %v", err)
		}
		if err == nil || !strings.Contains(err.Error(), p.Host()) || strings.Contains(err.Error(), "http://") {
			t.Errorf("no error with the host alone: %v", err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("asked", "err", err, "provider", p)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("asked", "err", call.Err(), "provider", p)
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			fmt.Fprintf(&log, format+"\n", p)
		}
		fmt.Fprintln(&log, p.Problem())
		checkSecrets(t, "the log", log.String())
		for wrapped := err; wrapped != nil; wrapped = errors.Unwrap(wrapped) {
			checkSecrets(t, "the error", wrapped.Error())
		}
	}
	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if !strings.Contains(scrape.Body.String(), "intents_core_rpc_errors_total{") {
		t.Error("the metrics count no errors")
	}
	checkSecrets(t, "the metrics", scrape.Body.String())
}

func TestProvider_Headers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte(secretUser+":"+secretWord))
		if r.Header.Get("Authorization") != want || r.UserAgent() != "intents-core" || r.URL.Path != "/v3/"+secretPath || r.URL.RawQuery != "key="+secretQuery {
			t.Errorf("got %s with %v", r.URL, r.Header)
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	err := provider(t, server.URL, rpc.Options{}).Do(t.Context(), rpc.ChainID())
	if !errors.Is(err, rpc.ErrTransport) || !strings.Contains(err.Error(), "HTTP 307") {
		t.Errorf("got %v", err)
	}
}
