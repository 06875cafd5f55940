package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
	"intents.internal/core/identity/account"
)

// changeWebhook answers POST /console/webhooks/{id}/change with a new URL, new types or a new description.
func (c *console) changeWebhook(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "url", "types", "description")
	if err != nil {
		return err
	}
	target, types, description := strings.TrimSpace(f.values["url"]), f.types(), f.values["description"]
	return c.doWebhook(w, r, user, f, "webhook-changed", func(e *webhook.Endpoint) error {
		return c.updateWebhook(r, user, e, webhook.Change{URL: &target, Types: &types, Description: &description})
	})
}

// enableWebhook answers POST /console/webhooks/{id}/enable.
func (c *console) enableWebhook(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.switchWebhook(w, r, user, true, "webhook-enabled")
}

// disableWebhook answers POST /console/webhooks/{id}/disable.
func (c *console) disableWebhook(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.switchWebhook(w, r, user, false, "webhook-disabled")
}

func (c *console) switchWebhook(w http.ResponseWriter, r *http.Request, user currentUser, enabled bool, done string) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	return c.doWebhook(w, r, user, f, done, func(e *webhook.Endpoint) error {
		return c.updateWebhook(r, user, e, webhook.Change{Enabled: &enabled})
	})
}

func (c *console) updateWebhook(r *http.Request, user currentUser, e *webhook.Endpoint, change webhook.Change) error {
	entry, err := c.auditEntry(r, user, account.WebhookUpdated)
	if err != nil {
		return err
	}
	_, err = c.Store.ChangeWebhook(r.Context(), e.Owner(), e.ID, entry, func(e *webhook.Endpoint) (string, error) {
		return c.Webhooks.Change(e, change, c.Store.Now())
	})
	return err
}

// testWebhook answers POST /console/webhooks/{id}/test.
func (c *console) testWebhook(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	return c.doWebhook(w, r, user, f, "webhook-tested", func(e *webhook.Endpoint) error {
		_, err := c.Store.TestWebhook(r.Context(), e.Owner(), e.ID)
		return err
	})
}

// replayWebhook answers POST /console/webhooks/{id}/replay, which sends the events of the given last seconds again.
func (c *console) replayWebhook(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "since")
	if err != nil {
		return err
	}
	return c.doWebhook(w, r, user, f, "webhook-replayed", func(e *webhook.Endpoint) error {
		if !slices.ContainsFunc(replays, func(c choice) bool { return c.Value == f.values["since"] }) {
			return &account.InvalidError{Field: "since", Message: "is not one of the choices"}
		}
		since := c.Store.Now().Add(-time.Duration(f.number("since")) * time.Second)
		entry, err := c.auditEntry(r, user, account.WebhookReplayed)
		if err != nil {
			return err
		}
		return c.Store.ReplayWebhook(r.Context(), e.Owner(), e.ID, since.UnixMicro(), entry) // positions are at least microseconds
	})
}

// retryDelivery answers POST /console/webhooks/{id}/retry, which sends one event again immediately.
func (c *console) retryDelivery(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "event")
	if err != nil {
		return err
	}
	return c.doWebhook(w, r, user, f, "webhook-retried", func(e *webhook.Endpoint) error {
		id, ok := event.ParseID(f.values["event"])
		if !ok {
			return webhook.ErrDeliveryNotFound
		}
		return c.Store.RetryDelivery(r.Context(), e.Owner(), e.ID, id)
	})
}

// doWebhook calls do with the webhook in the path and redirects to its page, which shows the notice done. The page also shows
// errors that the user can correct.
func (c *console) doWebhook(w http.ResponseWriter, r *http.Request, user currentUser, f *form, done string, do func(*webhook.Endpoint) error) error {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return err
	}
	if f.ok() {
		if err := f.note(do(e)); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderWebhook(w, r, user, f)
	}
	redirect(w, r, parentPath(r.URL.Path)+"?done="+done)
	return nil
}

// rotateSecret answers POST /console/webhooks/{id}/rotate with the new secret, which is shown only once.
func (c *console) rotateSecret(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "gracePeriod")
	if err != nil {
		return err
	}
	e, err := c.webhookOf(r, user)
	if err != nil {
		return err
	}
	var secret webhook.Secret
	if f.ok() {
		e, secret, err = c.rotate(r, user, e, f.number("gracePeriod"))
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderWebhook(w, r, user, f)
	}
	now := c.Store.Now()
	if e.Secrets.PreviousUntil != nil {
		now = *e.Secrets.PreviousUntil
	}
	return c.renderSecret(w, r, user, secretPage{Webhook: e, Secret: secret.Reveal(), PreviousUntil: &now})
}

func (c *console) rotate(r *http.Request, user currentUser, e *webhook.Endpoint, seconds int64) (rotated *webhook.Endpoint, secret webhook.Secret, err error) {
	grace, err := webhook.ParseGracePeriod(seconds)
	if err != nil {
		return nil, secret, err
	}
	entry, err := c.auditEntry(r, user, account.WebhookSecretRotated)
	if err != nil {
		return nil, secret, err
	}
	rotated, err = c.Store.ChangeWebhook(r.Context(), e.Owner(), e.ID, entry, func(e *webhook.Endpoint) (detail string, err error) {
		secret, detail, err = c.Webhooks.Rotate(e, grace, c.Store.Now())
		return detail, err
	})
	return rotated, secret, err
}

// confirmDeleteWebhook answers GET /console/webhooks/{id}/delete with a page that names the webhook and asks for confirmation.
func (c *console) confirmDeleteWebhook(w http.ResponseWriter, r *http.Request, user currentUser) error {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return err
	}
	return c.render(w, r, user, "delete-webhook", view{
		Title: "Delete a webhook", Section: "webhooks", Body: map[string]any{"Webhook": newWebhookView(e)},
	})
}

// deleteWebhook answers POST /console/webhooks/{id}/delete.
func (c *console) deleteWebhook(w http.ResponseWriter, r *http.Request, user currentUser) error {
	if _, err := readForm(r); err != nil {
		return err
	}
	e, err := c.webhookOf(r, user)
	if err != nil {
		return err
	}
	entry, err := c.auditEntry(r, user, account.WebhookDeleted)
	if err != nil {
		return err
	}
	if err := c.Store.DeleteWebhook(r.Context(), e.Owner(), e.ID, entry); err != nil {
		return err
	}
	redirect(w, r, webhooksPath+"?done=webhook-deleted")
	return nil
}
