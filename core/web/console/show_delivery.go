package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/webhooks"
)

// deliveryPage is the pattern of a delivery's page.
const deliveryPage = "GET /console/webhooks/{id}/deliveries/{event}"

// deliveryDetailsView is a delivery as its page shows it.
type deliveryDetailsView struct {
	deliveryView
	Webhook webhookView
	// Request is the body that is sent, indented, empty once the event is not kept.
	Request string
	// Transfer is the id of the event's intent, empty for none.
	Transfer string
	Past     []pastAttemptView
	// Most is how many attempts the page shows at most.
	Most int
}

// pastAttemptView is an attempt as the page shows it.
type pastAttemptView struct {
	webhooks.PastAttempt
	// Number sets the attempt's anchors apart from those of others on the page.
	Number int
	// Answered is whether there was a response, and Body the beginning of its body.
	Answered bool
	Body     string
	// Answer describes the response, or why there was none.
	Answer string
	// Took is the duration in words.
	Took string
}

// showDelivery answers GET /console/webhooks/{id}/deliveries/{event} with what was sent and what the receiver answered, which is other people's
// text: the page shows it as text only.
func (c *console) showDelivery(w http.ResponseWriter, r *http.Request, user currentUser, _ *form) error {
	e, err := c.webhookOf(r, user)
	if err != nil {
		return err
	}
	id, ok := feed.ParseID(r.PathValue("event"))
	if !ok {
		return webhooks.ErrDeliveryNotFound
	}
	d, e, err := c.Webhooks.Delivery(r.Context(), e.Owner(), e.ID, id)
	if err != nil {
		return err
	}
	v := deliveryDetailsView{deliveryView: newDeliveryView(d.Delivery), Webhook: newWebhookView(e), Most: webhooks.MaxPastAttempts}
	if d.Event != nil {
		body, err := d.Event.Body()
		if err != nil {
			return err
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "  "); err != nil {
			return err
		}
		v.Request = indented.String()
		if d.Event.Transfer != nil {
			v.Transfer = d.Event.Transfer.Summary.ID.String()
		}
	}
	for n, past := range d.Past {
		shown := pastAttemptView{PastAttempt: past, Number: n + 1, Answer: answerText(past.ResponseStatus, past.Error), Took: took(past.Duration)}
		if past.ResponseBody != nil {
			shown.Answered, shown.Body = true, *past.ResponseBody
		}
		v.Past = append(v.Past, shown)
	}
	return c.render(w, r, user, "delivery", view{Title: "Delivery of " + string(d.Type), Section: "webhooks", Of: e.Environment, Body: v})
}

// took formats the duration of an attempt.
func took(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}
