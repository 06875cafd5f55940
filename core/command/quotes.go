package command

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/intents"
	"intents.internal/core/outbound"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/pkg/settings"
)

// checkQuotes adds the faults of CORE_QUOTES_ALLOW; those of the file are readQuoteProviders'.
func (c Config) checkQuotes(f *settings.Faults) {
	if _, err := outbound.ParsePrefixes(c.QuotesAllow); err != nil {
		f.Add("CORE_QUOTES_ALLOW", "%v", err)
	}
}

// readQuoteProviders reads the file that CORE_QUOTES_FILE names; none without a file. It adds a fault with a line for each provider that is
// wrong, or at an address that CORE_QUOTES_ALLOW does not allow. It contains nothing secret.
func (c Config) readQuoteProviders(f *settings.Faults) []provider.Endpoint {
	if c.QuotesFile == "" {
		return nil
	}
	endpoints, err := provider.ReadFile(c.QuotesFile)
	if err != nil {
		f.AddError("CORE_QUOTES_FILE", err)
		return nil
	}
	networks, err := c.quoteNetworks()
	if err != nil {
		return nil // checkQuotes reports it
	}
	if err := provider.CheckAddresses(endpoints, networks); err != nil {
		f.Add("CORE_QUOTES_FILE", "names addresses that must not be called, and CORE_QUOTES_ALLOW does not allow them: %v", err)
	}
	return endpoints
}

func (c Config) quoteNetworks() (*outbound.Networks, error) {
	allowed, err := outbound.ParsePrefixes(c.QuotesAllow)
	if err != nil {
		return nil, err
	}
	return outbound.NewNetworks(allowed), nil
}

// newQuotes returns the providers of CORE_QUOTES_FILE too, which are closed after the last request.
func newQuotes(
	config Config, endpoints []provider.Endpoint, store *rooms.Rooms, live *registry.LiveRegistry, service *intents.Service,
	log *slog.Logger, metrics prometheus.Registerer,
) (*quotes.Service, *provider.Providers, error) {
	networks, err := config.quoteNetworks()
	if err != nil {
		return nil, nil, err
	}
	providers := provider.New(endpoints, provider.Options{Networks: networks, Registry: metrics, Log: log})
	return quotes.New(quotes.Config{
		Store: store.Quotes, Registry: live, Intents: service, Providers: providers,
	}), providers, nil
}
