package api

import (
	"net/http"

	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/wire"
)

// defaultDeliveries is the default limit of a page of deliveries, maxDeliveries the maximum.
const defaultDeliveries, maxDeliveries = 100, 1000

// deliveryPageJSON is a page; Next is null on the last one. A page may be empty and not be the last.
type deliveryPageJSON struct {
	Deliveries []deliveryJSON `json:"deliveries"`
	Next       *string        `json:"next"`
}

// listDeliveries answers GET /v2/webhooks/{id}/deliveries, newest first.
func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	wanted, err := parseDeliveryQuery(r)
	if err != nil {
		return err
	}
	found, next, err := s.Webhooks.Deliveries(r.Context(), by.Owner, by.id, wanted)
	if err != nil {
		return err
	}
	page := deliveryPageJSON{Deliveries: route.Each(found, newDeliveryJSON)}
	if next != nil {
		page.Next = new(next.String())
	}
	return route.WriteJSON(w, http.StatusOK, page)
}

func parseDeliveryQuery(r *http.Request) (wanted webhooks.DeliveryQuery, err error) {
	parameters, err := route.Query(r, "status", "after", "limit")
	if err != nil {
		return wanted, err
	}
	wanted.Limit = defaultDeliveries
	var issues []wire.Issue
	if text, given := parameters["after"]; given {
		if wanted.After, err = webhooks.ParseDeliveryCursor(text); err != nil {
			issues = append(issues, wire.Issue{Path: "after", Message: err.Error()})
		}
	}
	if text, given := parameters["limit"]; given {
		if wanted.Limit, err = route.WholeNumber(text, 1, maxDeliveries); err != nil {
			issues = append(issues, wire.Issue{Path: "limit", Message: err.Error()})
		}
	}
	if text, given := parameters["status"]; given {
		known := false
		if wanted.Status, known = webhooks.ParseStatus(text); !known {
			issues = append(issues, wire.Issue{Path: "status", Message: "must be pending, retrying, delivered or failed"})
		}
	}
	if len(issues) > 0 {
		return wanted, route.Invalid(issues...)
	}
	return wanted, nil
}
