package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// parseExplorer returns the URL without a slash at its end, empty for none. An error does not repeat it, because it may contain a credential.
func parseExplorer(raw json.RawMessage) (text string, err error) {
	if unset(raw) {
		return "", nil
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", errors.New("explorer must be a string, the base URL of an explorer such as https://etherscan.io")
	}
	if err := validatePublicURL(text, "https://etherscan.io"); err != nil {
		return "", fmt.Errorf("explorer %w", err)
	}
	return strings.TrimRight(text, "/"), nil
}

// TransactionURL is the explorer's page of a transaction by its hash in hexadecimal (EIP-3091), empty where the chain has no explorer.
func (c Chain) TransactionURL(hash string) string { return c.explorerURL("tx", hash) }

// AddressURL is the explorer's page of an account, empty where the chain has no explorer.
func (c Chain) AddressURL(address string) string { return c.explorerURL("address", address) }

// TokenURL is the explorer's page of a token, empty where the chain has no explorer and for the native asset, which has no contract.
func (c Chain) TokenURL(address string) string {
	if address == NativeAddress {
		return ""
	}
	return c.explorerURL("token", address)
}

func (c Chain) explorerURL(kind, id string) string {
	if c.Explorer == "" {
		return ""
	}
	return c.Explorer + "/" + kind + "/" + id
}
