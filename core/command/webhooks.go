package command

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/feed"
	"intents.internal/core/mail"
	"intents.internal/core/outbound"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/settings"
)

// checkWebhooks adds the faults of the settings of webhooks. It repeats no key.
func (c Config) checkWebhooks(f *settings.Faults) {
	if _, err := parseKey(c.WebhookSecretKey.Reveal()); err != nil {
		f.Add("CORE_WEBHOOK_SECRET_KEY", "%v", err)
	}
	if _, err := parseKey(c.WebhookSecretKeyPrevious.Reveal()); err != nil {
		f.Add("CORE_WEBHOOK_SECRET_KEY_PREVIOUS", "%v", err)
	}
	f.Expect(c.WebhookSecretKeyPrevious == "" || c.WebhookSecretKey != "", "CORE_WEBHOOK_SECRET_KEY", "is required with a previous key")
	if _, err := outbound.ParsePrefixes(c.WebhookAllow); err != nil {
		f.Add("CORE_WEBHOOK_ALLOW", "%v", err)
	}
}

// parseKey returns nil for no key.
func parseKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	return webhooks.ParseKey(text)
}

// webhooks are the rules of webhooks, nil without a key.
func (c Config) webhooks() (*webhooks.Rules, error) {
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
	sealer, err := webhooks.NewSealer(current, previous)
	return &webhooks.Rules{Networks: outbound.NewNetworks(allowed), Sealer: sealer}, err
}

// startWebhooks sends events to webhooks until ctx ends, if there is a key for their secrets.
func startWebhooks(
	ctx context.Context, group *errgroup.Group, config Config, rules *webhooks.Rules, store *rooms.Rooms, follower *feed.Follower, outbox *mail.Outbox,
	log *slog.Logger, metrics prometheus.Registerer,
) {
	if rules == nil {
		return
	}
	options := webhooks.Config{
		Store: store.Webhooks, Feed: follower, Sealer: rules.Sealer, Log: log, Metrics: metrics, Grace: config.ShutdownGrace,
		Client: webhooks.NewClient(rules.Networks, store.Now),
	}
	if outbox != nil {
		options.MailQueued = outbox.Wake
	}
	dispatcher := webhooks.New(options)
	group.Go(func() error { dispatcher.Run(ctx); return nil })
}
