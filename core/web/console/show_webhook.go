package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/webhooks"
)

// secretGraces are the form's choices for how long a rotated secret signs; the API accepts any number of seconds up to a week.
var secretGraces = []choice{
	{"86400", "24 hours more"}, {"604800", "7 days more"}, {"3600", "1 hour more"}, {"0", "Not at all"},
}

// replays are the form's choices for how far back a replay begins, in seconds.
var replays = []choice{
	{"3600", "The last hour"}, {days(1), "The last day"}, {days(7), "The last 7 days"},
}

// deliveryView is a delivery as the page shows it.
type deliveryView struct {
	webhooks.Delivery
	ID string
	// Answer describes the last response, empty for none.
	Answer string
}

// showWebhook answers GET /console/webhooks/{id} with its deliveries, newest first.
func (c *console) showWebhook(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return err
	}
	query := webhooks.DeliveryQuery{Limit: pageSize}
	if given := f.values["status"]; given != "" {
		status, known := webhooks.ParseStatus(given)
		if !known {
			f.add(pageError{status: http.StatusBadRequest, Field: "status", Text: "There is no such status."})
		}
		query.Status = status
	}
	if given := f.values["after"]; given != "" {
		if query.After, err = webhooks.ParseDeliveryCursor(given); err != nil {
			return errCursor
		}
	}
	deliveries, after, err := c.Webhooks.Deliveries(r.Context(), e.Owner(), e.ID, query)
	if err != nil {
		return err
	}
	next := ""
	if after != nil {
		next = "?" + url.Values{"status": {f.values["status"]}, "after": {after.String()}}.Encode()
	}
	views := make([]deliveryView, len(deliveries))
	for n, d := range deliveries {
		views[n] = newDeliveryView(d)
	}
	shown := newWebhookView(e)
	return c.render(w, r, user, "webhook", view{Title: e.URL, Section: "webhooks", Of: e.Environment, Form: f, Body: map[string]any{
		"Webhook": shown, "Deliveries": views, "Next": next, "First": query.After == nil, "Filtered": query.Status != "",
		"Statuses": webhooks.Statuses(), "Graces": secretGraces, "Replays": replays, "Tests": webhooks.TestTypes(), "Now": c.Now(),
		"URL": f.or("url", e.URL), "Types": newTypesView(f, e.Types), "Description": f.or("description", e.Description),
	}})
}

func newDeliveryView(d webhooks.Delivery) deliveryView {
	return deliveryView{Delivery: d, ID: d.EventID.String(), Answer: answerText(d.ResponseStatus, d.Error)}
}

// answerText describes a response and why it is a failure, or why there was none; it is empty without both.
func answerText(status int, fault string) string {
	if status == 0 {
		return fault
	}
	return strings.TrimSpace(strings.TrimSpace(strconv.Itoa(status)+" "+http.StatusText(status)) + ". " + fault)
}

// or returns the value of a field if it was sent, otherwise other.
func (f *form) or(name, other string) string {
	if _, sent := f.values[name]; sent {
		return f.Value(name)
	}
	return other
}

// webhookOf returns the webhook in the path. It returns webhooks.ErrNotFound if the account has no such webhook.
func (c *console) webhookOf(r *http.Request, user currentUser) (*webhooks.Endpoint, error) {
	if !c.Webhooks.Configured() {
		return nil, webhooks.ErrNotConfigured
	}
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return nil, webhooks.ErrNotFound
	}
	return c.Webhooks.Find(r.Context(), feed.Owner{AccountID: user.principal.Account.ID}, id)
}
