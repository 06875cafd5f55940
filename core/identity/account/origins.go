package account

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"intents.internal/pkg/loopback"
	"intents.internal/pkg/network"
)

const (
	// maxOrigins is the maximum number of origins of an account.
	maxOrigins = 20
	// maxOriginLen is the length of the longest origin: a host name of 253 characters with its scheme and port.
	maxOriginLen = 270
)

// KeyRules are what holds for all keys of an account in one environment.
type KeyRules struct {
	// Limit is that of the keys together.
	Limit Limit
	// Origins are those of all environments, see OriginsIn.
	Origins []string
}

// ParseOrigins parses origins of pages (RFC 6454), at most 20 different ones. It returns each once, sorted, as browsers write it: in lower case and
// without the scheme's default port. A scheme is https, or http at this machine.
func ParseOrigins(texts []string) ([]string, error) {
	origins := make([]string, 0, len(texts))
	for _, text := range texts {
		origin, ok := parseOrigin(text)
		if !ok {
			return nil, &InvalidError{Field: "origins", Message: fmt.Sprintf(
				"must be origins such as https://app.example.com or http://localhost:3000, without a path, not %.50q", text)}
		}
		origins = append(origins, origin)
	}
	slices.Sort(origins)
	origins = slices.Compact(origins)
	if len(origins) > maxOrigins {
		return nil, &InvalidError{Field: "origins", Message: fmt.Sprintf("must be at most %d", maxOrigins)}
	}
	return origins, nil
}

// hostName is a host name in ASCII; an internationalized one is in its xn-- form.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

func parseOrigin(text string) (string, bool) {
	text = strings.ToLower(text)
	u, err := url.Parse(text)
	if err != nil || len(text) > maxOriginLen || u.Scheme+"://"+u.Host != text || strings.HasSuffix(text, ":") {
		return "", false
	}
	address, err := netip.ParseAddr(u.Hostname())
	isAddress := err == nil && !address.Is4In6() && address.String() == u.Hostname() && address.Is6() == strings.HasPrefix(u.Host, "[")
	if !isAddress && !hostName.MatchString(u.Hostname()) {
		return "", false
	}
	isLocal := loopback.IsHost(u.Hostname()) || loopback.IsName(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || !isLocal) {
		return "", false
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port || n == 0 {
			return "", false
		}
	}
	return strings.TrimSuffix(text, map[string]string{"http": ":80", "https": ":443"}[u.Scheme]), true
}

// OriginsIn returns the origins from which the keys of an environment may be stood in for. Live keys are not for pages that came by http.
func (r *KeyRules) OriginsIn(env network.Environment) []string {
	if env != network.Live {
		return r.Origins
	}
	return slices.DeleteFunc(slices.Clone(r.Origins), func(origin string) bool { return strings.HasPrefix(origin, "http://") })
}

// DescribeOrigins describes origins for the audit log.
func DescribeOrigins(origins []string) string {
	if len(origins) == 0 {
		return "no origins"
	}
	return strings.Join(origins, " ")
}
