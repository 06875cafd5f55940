package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
)

// The bounds of a chain's public RPC URLs.
const (
	MaxRPCURLs     = 8
	MaxRPCURLBytes = 256
)

// validateRPCURL validates a public JSON-RPC URL as EIP-3085 requires: https, or http to a loopback address. User info, a query
// and a fragment are rejected, because a URL for browsers must not contain a credential.
func validateRPCURL(text string) error {
	if len(text) > MaxRPCURLBytes {
		return fmt.Errorf("must have at most %d bytes", MaxRPCURLBytes)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.String() != text {
		return errors.New("must be an absolute URL such as https://rpc.example.org") // the cause would repeat a credential
	}
	if u.User != nil || u.ForceQuery || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must have no user, password, query or fragment: it is public, and private URLs belong in the file of CORE_RPC_FILE")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New("must be https, or http to a loopback address")
	}
	return nil
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// parseRPCURLs returns nil for none. An error names the URL only by its index, because it may contain a credential.
func parseRPCURLs(raw json.RawMessage) ([]string, error) {
	if unset(raw) {
		return nil, nil
	}
	var urls []string
	if err := json.Unmarshal(raw, &urls); err != nil || len(urls) > MaxRPCURLs {
		return nil, fmt.Errorf("rpcUrls must be an array of at most %d strings", MaxRPCURLs)
	}
	if len(urls) == 0 {
		return nil, nil
	}
	for i, text := range urls {
		if err := validateRPCURL(text); err != nil {
			return nil, fmt.Errorf("rpcUrls[%d] %w", i, err)
		}
	}
	return urls, nil
}
