package telemetry_test

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"intents.internal/pkg/telemetry"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	var missing error
	server := httptest.NewServer(telemetry.Operations(telemetry.NewRegistry(),
		telemetry.Check{Name: "postgres", Probe: func(context.Context) error { return missing }}))
	listen := server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{listen, ":" + port, "0.0.0.0:" + port} {
		if err := telemetry.Probe(t.Context(), address); err != nil {
			t.Errorf("a service that is ready at %s: %v", address, err)
		}
	}
	missing = errors.New("connection refused")
	if err := telemetry.Probe(t.Context(), listen); err == nil || !strings.Contains(err.Error(), `"postgres":"connection refused"`) {
		t.Errorf("a service that is not ready: %v", err)
	}
	server.Close()
	if err := telemetry.Probe(t.Context(), listen); err == nil || !strings.Contains(err.Error(), "not serving") {
		t.Errorf("a service that is gone: %v", err)
	}
	if err := telemetry.Probe(t.Context(), "nowhere"); err == nil {
		t.Error("an address without a port is taken")
	}
}
