package console

import (
	"net/http"
	"strings"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
)

// createWebhook answers POST /console/webhooks with the webhook's secret, which is shown only once.
func (c *console) createWebhook(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	created, secret, err := c.insertWebhook(r, user, f)
	if err != nil {
		return "", err
	}
	return "", c.renderSecret(w, r, user, secretPage{Webhook: created, Secret: secret.Reveal()})
}

func (c *console) insertWebhook(r *http.Request, user currentUser, f *form) (*webhooks.Endpoint, webhooks.Secret, error) {
	owner := feed.Owner{AccountID: user.principal.Account.ID, Environment: network.Environment(f.values["environment"])}
	draft := webhooks.Draft{URL: strings.TrimSpace(f.values["url"]), Types: f.types(), Description: f.values["description"]}
	created, secret, err := c.Webhooks.New(owner, draft)
	if err != nil {
		return nil, secret, err
	}
	// An invalid field is reported before an invalid form token.
	token, err := formToken(user, f)
	if err != nil {
		return nil, secret, err
	}
	by := c.Webhooks.Person(c.confirming(r, f), user.principal)
	return created, secret, c.Webhooks.Create(r.Context(), by, created, token)
}

// secretPage shows a secret.
type secretPage struct {
	Webhook *webhooks.Endpoint
	Secret  string
	// PreviousUntil is until when the previous secret also signs, nil if there was none.
	PreviousUntil *time.Time
}

func (c *console) renderSecret(w http.ResponseWriter, r *http.Request, user currentUser, p secretPage) error {
	title := "Your new webhook"
	if p.PreviousUntil != nil {
		title = "The secret was rotated"
	}
	return c.render(w, r, user, "webhook-secret", view{Title: title, Section: "webhooks", Of: p.Webhook.Environment, Body: p})
}
