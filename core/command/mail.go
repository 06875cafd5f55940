package command

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/identity"
	"intents.internal/core/identity/mail"
	"intents.internal/core/store"
)

func (c Config) validateMail() error {
	_, err := c.smtp()
	return err
}

// smtp is the server that takes mail, nil for none.
func (c Config) smtp() (*mail.SMTP, error) {
	if c.SMTPURL == "" {
		return nil, expect(c.SMTPFrom == "", "CORE_SMTP_URL is required with CORE_SMTP_FROM")
	}
	domain := "localhost"
	if public, err := url.Parse(c.PublicURL); err == nil && public.Hostname() != "" {
		domain = public.Hostname()
	}
	if err := mail.ValidateURL(c.SMTPURL.Reveal()); err != nil {
		return nil, fmt.Errorf("CORE_SMTP_URL %w", err)
	}
	if err := mail.ValidateFrom(c.SMTPFrom); err != nil {
		return nil, fmt.Errorf("CORE_SMTP_FROM %w", err)
	}
	return mail.NewSMTP(mail.SMTPConfig{URL: c.SMTPURL.Reveal(), From: c.SMTPFrom, Domain: domain})
}

// newOutbox is the sender of mail, nil where no server takes any.
func newOutbox(config Config, store *store.Rooms, log *slog.Logger, metrics prometheus.Registerer) (*mail.Outbox, error) {
	smtp, err := config.smtp()
	if smtp == nil || err != nil {
		return nil, err
	}
	return mail.NewOutbox(store.Identities, smtp, log, metrics), nil
}

// startOutbox sends mail until ctx ends.
func startOutbox(ctx context.Context, group *errgroup.Group, outbox *mail.Outbox, identities *identity.Service) {
	if outbox != nil {
		group.Go(func() error { outbox.Run(ctx, identities.ComposeMail); return nil })
	}
}
