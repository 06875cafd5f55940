package console

import (
	"net/http"
	"strings"

	"intents.internal/core/feed"
	"intents.internal/core/webhooks"
)

// webhooksPath is the path of the list; each webhook's page is below it.
const webhooksPath = "/console/webhooks"

// disabledReasons are the display texts for why a webhook is disabled.
var disabledReasons = map[webhooks.Reason]string{
	webhooks.DisabledByOwner: "It was disabled in the console or through the API.",
	webhooks.DisabledGone:    "Its server answered 410 (Gone), which means that it wants no more events.",
	webhooks.DisabledFailing: "Every attempt failed for five days.",
}

// webhookView is a webhook as the pages show it.
type webhookView struct {
	*webhooks.Endpoint
	// State and Why are "Enabled" or "Disabled" and the reason.
	State, Why string
	// Filter is the names of the types, empty for all.
	Filter string
}

func newWebhookView(e *webhooks.Endpoint) webhookView {
	v := webhookView{Endpoint: e, State: stateEnabled, Filter: strings.Join(e.Types, " ")}
	if !e.Enabled {
		v.State, v.Why = stateDisabled, disabledReasons[e.DisabledReason]
	}
	return v
}

// listWebhooks answers GET /console/webhooks with the webhooks of the shown environment, newest first.
func (c *console) listWebhooks(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	if !c.Webhooks.Configured() {
		return webhooks.ErrNotConfigured
	}
	endpoints, err := c.Webhooks.List(r.Context(), feed.Owner{AccountID: user.principal.Account.ID})
	if err != nil {
		return err
	}
	of := f.listed(user)
	var views []webhookView
	for _, e := range endpoints {
		if e.Environment == of {
			views = append(views, newWebhookView(e))
		}
	}
	return c.render(w, r, user, "webhooks", view{Title: "Webhooks", Section: "webhooks", Of: of, Form: f, Body: map[string]any{
		"Webhooks": views, "Count": len(endpoints), "Environment": of, "Most": webhooks.MaxEndpoints, "Types": newTypesView(f, nil), "FormToken": newFormToken(),
	}})
}
