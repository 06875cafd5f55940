package command

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/events/delivery"
	"intents.internal/core/events/feed"
	"intents.internal/core/events/webhook"
	"intents.internal/core/identity/mail"
	"intents.internal/core/outbound"
	"intents.internal/core/store"
)

// validateWebhooks reports the faults of the settings of webhooks. It repeats no key.
func (c Config) validateWebhooks() error {
	_, keyErr := parseKey(c.WebhookSecretKey.Reveal())
	_, previousErr := parseKey(c.WebhookSecretKeyPrevious.Reveal())
	_, allowErr := outbound.ParsePrefixes(c.WebhookAllow)
	return errors.Join(
		expect(keyErr == nil, "CORE_WEBHOOK_SECRET_KEY %v", keyErr),
		expect(previousErr == nil, "CORE_WEBHOOK_SECRET_KEY_PREVIOUS %v", previousErr),
		expect(c.WebhookSecretKeyPrevious == "" || c.WebhookSecretKey != "", "CORE_WEBHOOK_SECRET_KEY is required with a previous key"),
		expect(allowErr == nil, "CORE_WEBHOOK_ALLOW %v", allowErr),
	)
}

// parseKey returns nil for no key.
func parseKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	return webhook.ParseKey(text)
}

// webhooks are the rules of webhooks, nil without a key.
func (c Config) webhooks() (*webhook.Rules, error) {
	current, err := parseKey(c.WebhookSecretKey.Reveal())
	if err != nil || current == nil {
		return nil, err
	}
	previous, err := parseKey(c.WebhookSecretKeyPrevious.Reveal())
	if err != nil {
		return nil, err
	}
	allowed, err := outbound.ParsePrefixes(c.WebhookAllow)
	if err != nil {
		return nil, err
	}
	sealer, err := webhook.NewSealer(current, previous)
	return &webhook.Rules{Networks: outbound.NewNetworks(allowed), Sealer: sealer}, err
}

// startWebhooks sends events to webhooks until ctx ends, if there is a key for their secrets.
func startWebhooks(
	ctx context.Context, group *errgroup.Group, config Config, rules *webhook.Rules, store *store.Rooms, follower *feed.Follower, outbox *mail.Outbox,
	log *slog.Logger, metrics prometheus.Registerer,
) {
	if rules == nil {
		return
	}
	settings := delivery.Config{
		Store: store.Events, Feed: follower, Sealer: rules.Sealer, Log: log, Metrics: metrics, Grace: config.ShutdownGrace,
		Client: delivery.NewClient(rules.Networks, store.Now),
	}
	if outbox != nil {
		settings.MailQueued = outbox.Wake
	}
	dispatcher := delivery.New(settings)
	group.Go(func() error { dispatcher.Run(ctx); return nil })
}
