package registry

import (
	"errors"
	"fmt"
	"net/url"

	"intents.internal/pkg/loopback"
)

// MaxURLBytes is the bound of each public URL of a chain.
const MaxURLBytes = 256

// validatePublicURL validates a URL that browsers are given: https, or http to a loopback address. User info, a query and a fragment are rejected,
// because such a URL must not contain a credential, and no error repeats the URL. example is a URL of its kind.
func validatePublicURL(text, example string) error {
	if len(text) > MaxURLBytes {
		return fmt.Errorf("must have at most %d bytes", MaxURLBytes)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.String() != text {
		return fmt.Errorf("must be an absolute URL such as %s", example) // the cause would repeat a credential
	}
	if u.User != nil || u.ForceQuery || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must have no user, password, query or fragment: it is public, and private URLs belong in the file of CORE_RPC_FILE")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback.IsHost(u.Hostname())) {
		return errors.New("must be https, or http to a loopback address")
	}
	return nil
}
