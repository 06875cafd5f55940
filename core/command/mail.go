package command

import (
	"context"
	"log/slog"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/identity"
	"intents.internal/core/mail"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/settings"
)

func (c Config) checkMail(f *settings.Faults) {
	if c.SMTPURL == "" {
		f.Expect(c.SMTPFrom == "", "CORE_SMTP_URL", "is required with CORE_SMTP_FROM")
		return
	}
	if err := mail.ValidateURL(c.SMTPURL.Reveal()); err != nil {
		f.Add("CORE_SMTP_URL", "%v", err)
	}
	if err := mail.ValidateFrom(c.SMTPFrom); err != nil {
		f.Add("CORE_SMTP_FROM", "%v", err)
	}
}

// smtp is the server that takes mail, nil for none.
func (c Config) smtp() (*mail.SMTP, error) {
	if c.SMTPURL == "" {
		return nil, nil //nolint:nilnil // no server is configured
	}
	domain := "localhost"
	if public, err := url.Parse(c.PublicURL); err == nil && public.Hostname() != "" {
		domain = public.Hostname()
	}
	return mail.NewSMTP(mail.SMTPConfig{URL: c.SMTPURL.Reveal(), From: c.SMTPFrom, Domain: domain})
}

// newOutbox is the sender of mail, nil where no server takes any.
func newOutbox(config Config, store *rooms.Rooms, log *slog.Logger, metrics prometheus.Registerer) (*mail.Outbox, error) {
	smtp, err := config.smtp()
	if smtp == nil || err != nil {
		return nil, err
	}
	return mail.NewOutbox(store.Mail, smtp, log, metrics), nil
}

// startOutbox sends mail until ctx ends.
func startOutbox(ctx context.Context, group *errgroup.Group, outbox *mail.Outbox, identities *identity.Service, hooks *webhooks.Service) {
	if outbox != nil {
		composers := identities.Composers()
		composers[mail.KindWebhookDisabled] = identities.LimitMails(hooks.ComposeDisabled)
		group.Go(func() error { outbox.Run(ctx, composers); return nil })
	}
}
