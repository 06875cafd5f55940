package registry

import (
	"encoding/json"
	"fmt"
)

// MaxRPCURLs is how many public JSON-RPC URLs a chain has at most.
const MaxRPCURLs = 8

// parseRPCURLs returns nil for none. The URLs are as EIP-3085 requires. An error names the URL only by its index, because it may contain a
// credential.
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
		if err := validatePublicURL(text, "https://rpc.example.org"); err != nil {
			return nil, fmt.Errorf("rpcUrls[%d] %w", i, err)
		}
	}
	return urls, nil
}
