package telemetry

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
)

// probeTimeout is longer than /readyz can take.
const probeTimeout = 2 * checkTimeout

// Probe requests /readyz of the service whose operations listener is at this host:port of this machine, and returns nil if it is
// ready. It is the health check of containers without a shell. For a wildcard address it connects to the loopback address.
func Probe(ctx context.Context, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("probe the operations listener: %w", err)
	}
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1"
		if address.Is6() {
			host = "::1"
		}
	}
	return ProbeURL(ctx, "http://"+net.JoinHostPort(host, port)+"/readyz")
}

// ProbeURL requests a URL, and returns nil if the answer is a success.
func ProbeURL(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("probe %s: %w", url, err)
	}
	// It uses no proxy from the environment and keeps no idle connection.
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("not serving: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 == 2 {
		return nil
	}
	report, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	return fmt.Errorf("not ready: %d %s", response.StatusCode, report)
}
