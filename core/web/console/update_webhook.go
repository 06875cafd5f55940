package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/webhooks"
)

// changeWebhook answers POST /console/webhooks/{id}/change with a new URL, new types or a new description.
func (c *console) changeWebhook(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	target, types, description := strings.TrimSpace(f.values["url"]), f.types(), f.values["description"]
	return c.updateWebhook(r, user, f, webhooks.Change{URL: &target, Types: &types, Description: &description}, "webhook-changed")
}

// enableWebhook answers POST /console/webhooks/{id}/enable.
func (c *console) enableWebhook(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	enabled := true
	return c.updateWebhook(r, user, f, webhooks.Change{Enabled: &enabled}, "webhook-enabled")
}

// disableWebhook answers POST /console/webhooks/{id}/disable.
func (c *console) disableWebhook(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	enabled := false
	return c.updateWebhook(r, user, f, webhooks.Change{Enabled: &enabled}, "webhook-disabled")
}

// updateWebhook changes the webhook and returns the path of its page with the notice done.
func (c *console) updateWebhook(r *http.Request, user currentUser, f *form, change webhooks.Change, done string) (string, error) {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return "", err
	}
	_, err = c.Webhooks.Update(r.Context(), c.Webhooks.Person(c.confirming(r, f), user.principal), e.ID, change)
	return parentPath(r.URL.Path) + "?done=" + done, err
}

// testWebhook answers POST /console/webhooks/{id}/test, which sends a test event of a type.
func (c *console) testWebhook(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return "", err
	}
	kind := cmp.Or(feed.Type(f.values["type"]), feed.TypeWebhookTest)
	if !slices.Contains(webhooks.TestTypes(), kind) {
		return "", &account.InvalidError{Field: "type", Message: "is not one of the choices"}
	}
	_, err = c.Webhooks.Test(r.Context(), c.Webhooks.Person(c.client(r), user.principal), e.ID, kind)
	return parentPath(r.URL.Path) + "?done=webhook-tested", err
}

// replayWebhook answers POST /console/webhooks/{id}/replay, which sends the events of the given last seconds again.
func (c *console) replayWebhook(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(replays, func(c choice) bool { return c.Value == f.values["since"] }) {
		return "", &account.InvalidError{Field: "since", Message: "is not one of the choices"}
	}
	since := c.Now().Add(-time.Duration(f.number("since")) * time.Second)
	err = c.Webhooks.Replay(r.Context(), c.Webhooks.Person(c.client(r), user.principal), e.ID, since.UnixMicro()) // positions are at least microseconds
	return parentPath(r.URL.Path) + "?done=webhook-replayed", err
}

// retryDelivery answers POST /console/webhooks/{id}/retry, which sends one event again immediately.
func (c *console) retryDelivery(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return "", err
	}
	id, ok := feed.ParseID(f.values["event"])
	if !ok {
		return "", webhooks.ErrDeliveryNotFound
	}
	return parentPath(r.URL.Path) + "?done=webhook-retried", c.Webhooks.RetryDelivery(r.Context(), c.Webhooks.Person(c.client(r), user.principal), e.ID, id)
}

// rotateSecret answers POST /console/webhooks/{id}/rotate with the new secret, which is shown only once.
func (c *console) rotateSecret(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return "", err
	}
	e, secret, err := c.rotate(r, user, e, f)
	if err != nil {
		return "", err
	}
	now := c.Now()
	if e.Secrets.PreviousUntil != nil {
		now = *e.Secrets.PreviousUntil
	}
	return "", c.renderSecret(w, r, user, secretPage{Webhook: e, Secret: secret.Reveal(), PreviousUntil: &now})
}

func (c *console) rotate(r *http.Request, user currentUser, e *webhooks.Endpoint, f *form) (rotated *webhooks.Endpoint, secret webhooks.Secret, err error) {
	grace, err := webhooks.ParseGracePeriod(f.number("gracePeriod"))
	if err != nil {
		return nil, secret, err
	}
	return c.Webhooks.RotateSecret(r.Context(), c.Webhooks.Person(c.confirming(r, f), user.principal), e.ID, grace)
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
func (c *console) deleteWebhook(_ http.ResponseWriter, r *http.Request, user currentUser, _ *form) (string, error) {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return "", err
	}
	return webhooksPath + "?done=webhook-deleted", c.Webhooks.Delete(r.Context(), c.Webhooks.Person(c.client(r), user.principal), e.ID)
}
