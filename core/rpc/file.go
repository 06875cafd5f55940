package rpc

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
)

const (
	// maxConfiguredRange and maxConfiguredRate are far over what any node serves; a larger number is a mistake.
	maxConfiguredRange = 1_000_000
	maxConfiguredRate  = 100_000
)

// Providers are the nodes of each chain in the operator's order of preference.
type Providers map[caip.ChainID][]Endpoint

// Endpoint is a node's URL and its limits.
type Endpoint struct {
	// URL is http or https and usually holds a key. Its user and password are sent as basic authentication.
	URL telemetry.Secret
	// MaxRange is the largest number of blocks that one eth_getLogs asks for; 0 means 10,000.
	MaxRange uint64
	// RequestsPerSecond is the rate of calls, each of a batch counted; 0 means 50.
	RequestsPerSecond float64
}

// ReadFile reads the file that CORE_RPC_FILE names, `{"eip155:1": ["https://…", {"url": "https://…", "maxRange": 2000,
// "requestsPerSecond": 20}]}`. The error has a line for each problem and names nothing of a URL but its host.
func ReadFile(path string) (Providers, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the RPC file: %w", err)
	}
	var chains map[string]jsontext.Value
	if err := json.Unmarshal(text, &chains); err != nil || chains == nil {
		return nil, fmt.Errorf("read the RPC file: line %d: must be one JSON object of chains, none of them twice", settings.SyntaxErrorLine(text, err))
	}
	file := fileReader{providers: Providers{}, places: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(chains)) {
		file.readChain(name, chains[name])
	}
	if err := errors.Join(file.problems...); err != nil {
		return nil, fmt.Errorf("read the RPC file: %w", err)
	}
	return file.providers, nil
}

type fileReader struct {
	providers Providers
	// places has where in the file each URL was read.
	places   map[string]string
	problems []error
}

func (f *fileReader) addProblem(place, format string, values ...any) {
	f.problems = append(f.problems, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, values...)))
}

func (f *fileReader) readChain(name string, text jsontext.Value) {
	id, err := caip.ParseChainID(name)
	if _, ok := id.Number(); err != nil || !ok {
		f.addProblem(printableName(name), "must be a chain id such as eip155:1")
		id = caip.ChainID{}
	}
	var elements []jsontext.Value
	if err := json.Unmarshal(text, &elements); err != nil || len(elements) == 0 {
		f.addProblem(printableName(name), "must have a list of at least one URL")
		return
	}
	for i, element := range elements {
		place := fmt.Sprintf("%s[%d]", printableName(name), i)
		if endpoint, ok := f.readEndpoint(place, element); ok {
			f.providers[id] = append(f.providers[id], endpoint)
		}
	}
}

// printableName hides a name that may be a URL or a key in the wrong place.
func printableName(name string) string {
	if len(name) > 25 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("/@?", r) }) {
		return "[redacted]"
	}
	return name
}

func (f *fileReader) readEndpoint(place string, text jsontext.Value) (Endpoint, bool) {
	var wire struct {
		URL               string   `json:"url"`
		MaxRange          *uint64  `json:"maxRange"`
		RequestsPerSecond *float64 `json:"requestsPerSecond"`
	}
	var err error
	if text.Kind() == '"' {
		err = json.Unmarshal(text, &wire.URL)
	} else {
		err = json.Unmarshal(text, &wire, json.RejectUnknownMembers(true))
	}
	if err != nil || text.Kind() == 'n' {
		f.addProblem(place, "must be a URL, or an object of url (a text), maxRange (a whole number), requestsPerSecond (a number) and nothing else")
		return Endpoint{}, false
	}
	problems := len(f.problems)
	f.checkURL(place, wire.URL)
	endpoint := Endpoint{URL: telemetry.Secret(wire.URL)}
	if r := wire.MaxRange; r != nil {
		endpoint.MaxRange = *r
		if *r < 1 || *r > maxConfiguredRange {
			f.addProblem(place, "maxRange must be from 1 to %d", maxConfiguredRange)
		}
	}
	if r := wire.RequestsPerSecond; r != nil {
		endpoint.RequestsPerSecond = *r
		if *r <= 0 || *r > maxConfiguredRate {
			f.addProblem(place, "requestsPerSecond must be over 0 and at most %d", maxConfiguredRate)
		}
	}
	return endpoint, len(f.problems) == problems
}

func (f *fileReader) checkURL(place, text string) {
	address, err := parseURL(text)
	if err != nil {
		f.addProblem(place, "%s", err)
		return
	}
	address.Host = hostOf(address)
	if earlier, ok := f.places[address.String()]; ok {
		f.addProblem(place, "the URL at %s is the same as at %s", address.Host, earlier)
		return
	}
	f.places[address.String()] = place
}

// parseURL reads a node's URL. Its errors tell nothing of it.
func parseURL(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is not a valid URL")
	case address.Scheme != "https" && address.Scheme != "http":
		return nil, errors.New("the URL must begin with https:// or http://")
	case address.Hostname() == "":
		return nil, errors.New("the URL has no host")
	case address.Fragment != "":
		return nil, errors.New("the URL has a fragment, which is never sent")
	}
	return address, nil
}
