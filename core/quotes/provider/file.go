package provider

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/http/httpguts"

	"intents.internal/core/outbound"
	"intents.internal/core/registry"
	"intents.internal/pkg/network"
	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
)

const (
	// maxProviders bounds the providers that one process asks.
	maxProviders = 32
	// minTimeout and maxTimeout bound the time of one answer; maxTimeout is the default.
	minTimeout, maxTimeout = 100 * time.Millisecond, 2 * time.Second
	// defaultAccountRequests is how many requests a minute one account may make of a provider where its entry says nothing, and
	// maxAccountRequests the most that an entry may say.
	defaultAccountRequests, maxAccountRequests = 60, 60_000
)

// Kind is the API that a provider serves.
type Kind string

// The two kinds.
const (
	// LIFI is LI.FI's API for integrators of its intents.
	LIFI Kind = "lifi"
	// OIF is the API of the Open Intents Framework.
	OIF Kind = "oif"
)

var dialects = map[Kind]dialect{LIFI: lifi{}, OIF: oif{}}

// Endpoint is a provider as the operator describes it.
type Endpoint struct {
	// Name is shown to clients and identifies the provider's metrics: 1 to 32 characters of a-z, 0-9 and hyphen.
	Name string
	Kind Kind
	// URL is https, without user, password and fragment; http for a provider of testnets in an allowed network. The kind's path is appended; a
	// query is kept and may hold a key.
	URL         telemetry.Secret
	Environment network.Environment
	// Deployment is the one of the registry's chains whose orders the provider fills.
	Deployment string
	// Timeout bounds a request until its answer is read, 100 ms to 2 s.
	Timeout time.Duration
	// AccountRequests is how many requests a minute one account may make, 0 for no bound.
	AccountRequests int
	// ReserveBps is how many hundredths of a percent quotes are worse for the user than the provider's: 0 to 500.
	ReserveBps int64
	// Orders means that signed orders may be handed to the provider, whose kind is OIF.
	Orders bool
	// Headers are sent with each request, by their canonical names.
	Headers map[string]telemetry.Secret
}

// ReadFile reads the file that CORE_QUOTES_FILE names, `[{"name": "lifi", "kind": "lifi", "url": "https://…", "environment": "live",
// "deployment": "lifi-v2", "timeoutMs": 2000, "accountRequestsPerMinute": 60, "reserveBps": 0, "orders": false, "headers": {"X-Integrator-Key": "…"}}]`; the last five
// may be left out.
// The error has a line for each problem, by the provider's name or its place in the list. It names nothing of a URL but its host, and no
// header's value.
func ReadFile(path string) ([]Endpoint, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the quotes file: %w", err)
	}
	var entries []jsontext.Value
	if err := json.Unmarshal(text, &entries); err != nil || len(entries) == 0 {
		return nil, fmt.Errorf("read the quotes file: line %d: must be one JSON list of at least one provider", settings.SyntaxErrorLine(text, err))
	}
	file := fileReader{places: map[string]int{}}
	if len(entries) > maxProviders {
		file.addProblem("the list", "has %d providers, over the limit of %d", len(entries), maxProviders)
	}
	endpoints := make([]Endpoint, len(entries))
	for n, entry := range entries {
		endpoints[n] = file.readEndpoint(n, entry)
	}
	if err := errors.Join(file.problems...); err != nil {
		return nil, fmt.Errorf("read the quotes file: %w", err)
	}
	return endpoints, nil
}

type fileReader struct {
	// places has where in the file each name was read.
	places   map[string]int
	problems []error
}

func (f *fileReader) addProblem(place, format string, values ...any) {
	f.problems = append(f.problems, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, values...)))
}

var providerName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

func (f *fileReader) readEndpoint(n int, text jsontext.Value) Endpoint {
	var entry struct {
		Name        string            `json:"name"`
		Kind        Kind              `json:"kind"`
		URL         string            `json:"url"`
		Environment string            `json:"environment"`
		Deployment  string            `json:"deployment"`
		TimeoutMs   *int64            `json:"timeoutMs"`
		PerMinute   *int64            `json:"accountRequestsPerMinute"`
		ReserveBps  int64             `json:"reserveBps"`
		Orders      bool              `json:"orders"`
		Headers     map[string]string `json:"headers"`
	}
	err := json.Unmarshal(text, &entry, json.RejectUnknownMembers(true))
	if err != nil || text.Kind() != '{' {
		f.addProblem(fmt.Sprintf("[%d]", n), "must be an object of name, kind, url, environment, deployment (texts), timeoutMs, accountRequestsPerMinute and "+
			"reserveBps (whole numbers), orders (true or false), headers (an object of texts) and nothing else")
		return Endpoint{}
	}
	place := f.readName(n, entry.Name)
	e := Endpoint{
		Name: entry.Name, Kind: entry.Kind, URL: telemetry.Secret(entry.URL), Environment: network.Environment(entry.Environment),
		Deployment: entry.Deployment, Timeout: maxTimeout, AccountRequests: defaultAccountRequests,
		Orders: entry.Orders, Headers: f.readHeaders(place, entry.Headers),
	}
	if e.Orders && e.Kind != OIF {
		f.addProblem(place, `orders needs the kind "oif"`)
	}
	if dialects[e.Kind] == nil {
		f.addProblem(place, `kind must be "lifi" or "oif"`)
	}
	if address, err := parseURL(entry.URL); err != nil {
		f.addProblem(place, "%s", err)
	} else if isPlain(address) && e.Environment == network.Live {
		f.addProblem(place, "url must begin with https:// for live keys")
	}
	if _, err := network.Parse(entry.Environment); err != nil {
		f.addProblem(place, `environment must be "test" or "live"`)
	}
	if !registry.IsDeployment(e.Deployment) {
		f.addProblem(place, "deployment must be one of the chains' settlements: 1 to 64 characters of a-z, 0-9, dot and hyphen")
	}
	if ms := entry.TimeoutMs; ms != nil {
		e.Timeout = time.Duration(min(*ms, maxTimeout.Milliseconds()+1)) * time.Millisecond
		if e.Timeout < minTimeout || e.Timeout > maxTimeout {
			f.addProblem(place, "timeoutMs must be from %d to %d", minTimeout.Milliseconds(), maxTimeout.Milliseconds())
		}
	}
	if n := entry.PerMinute; n != nil {
		e.AccountRequests = int(min(*n, maxAccountRequests+1))
		if *n < 1 || *n > maxAccountRequests {
			f.addProblem(place, "accountRequestsPerMinute must be from 1 to %d", maxAccountRequests)
		}
	}
	if e.ReserveBps = entry.ReserveBps; e.ReserveBps < 0 || e.ReserveBps > maxReserveBps {
		f.addProblem(place, "reserveBps must be from 0 to %d", maxReserveBps)
	}
	return e
}

// readName returns how the problems of an entry name it.
func (f *fileReader) readName(n int, name string) (place string) {
	place = fmt.Sprintf("[%d]", n)
	if !providerName.MatchString(name) {
		f.addProblem(place, "name must have 1 to 32 characters of a-z, 0-9 and hyphen")
		return place
	}
	if earlier, ok := f.places[name]; ok {
		f.addProblem(place, "the name %s is that of [%d] too", name, earlier)
		return place
	}
	f.places[name] = n
	return name
}

// reservedHeaders describe the connection (RFC 9110, section 7.6.1) or the body, which are the client's.
var reservedHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive",
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func (f *fileReader) readHeaders(place string, headers map[string]string) map[string]telemetry.Secret {
	read := map[string]telemetry.Secret{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		canonical := http.CanonicalHeaderKey(name)
		if !httpguts.ValidHeaderFieldName(name) {
			f.addProblem(place, "a header has a name that is no token of RFC 9110")
			continue
		}
		if slices.Contains(reservedHeaders, canonical) {
			f.addProblem(place, "the header %s is set by the client of HTTP", canonical)
		}
		if value := headers[name]; strings.TrimSpace(value) == "" || !httpguts.ValidHeaderFieldValue(value) {
			f.addProblem(place, "the header %s must have a value of visible characters", canonical)
		}
		if _, twice := read[canonical]; twice {
			f.addProblem(place, "the header %s is named twice", canonical)
		}
		read[canonical] = telemetry.Secret(headers[name])
	}
	return read
}

// parseURL reads a provider's URL. Its errors tell nothing of it.
func parseURL(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("url is not a valid URL")
	case address.Scheme != "https" && address.Scheme != "http":
		return nil, errors.New("url must begin with https://, or with http:// in an allowed network")
	case address.Hostname() == "":
		return nil, errors.New("url has no host")
	case address.User != nil:
		return nil, errors.New("url has a user or password; a header can be sent instead")
	case strings.Contains(text, "#"):
		return nil, errors.New("url has a fragment, which is never sent")
	}
	return address, nil
}

// isPlain reports whether a URL's requests can be read on the way.
func isPlain(address *url.URL) bool { return address.Scheme == "http" }

// networksOf are the addresses at which a URL may be called: allowed networks alone for http://, in which headers can be read on the way.
func networksOf(address *url.URL, networks *outbound.Networks) *outbound.Networks {
	if isPlain(address) {
		return networks.WithoutPublic()
	}
	return networks
}

var errPlain = errors.New("http:// is for addresses in the networks of CORE_QUOTES_ALLOW, because headers can be read on the way; use https://")

// CheckAddresses reports the providers, by name, whose URL has an address that must not be called in place of a name, and those of http:// where
// no network is allowed. What a name leads to is checked whenever it is dialled.
func CheckAddresses(endpoints []Endpoint, networks *outbound.Networks) error {
	var problems []error
	for _, e := range endpoints {
		address, err := parseURL(e.URL.Reveal())
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", e.Name, err))
			continue
		}
		if networks == nil {
			continue
		}
		err = nil
		if literal, none := netip.ParseAddr(address.Hostname()); none == nil {
			err = networksOf(address, networks).Check(netip.AddrPortFrom(literal, portOf(address)))
		}
		if isPlain(address) && (err != nil || networks.OnlyPublic()) {
			err = errPlain
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", e.Name, address.Host, err))
		}
	}
	return errors.Join(problems...)
}

// portOf is the port that a URL is dialled at, 0 for one that there is not.
func portOf(address *url.URL) uint16 {
	text := address.Port()
	if text == "" {
		text = map[string]string{"http": "80", "https": "443"}[address.Scheme]
	}
	port, _ := strconv.ParseUint(text, 10, 16)
	return uint16(port) // of 16 bits
}
