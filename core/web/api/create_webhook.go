package api

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"

	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
)

// webhookBody is the body of POST /v2/webhooks.
type webhookBody struct {
	URL         string   `json:"url"`
	Types       []string `json:"types"`
	Description string   `json:"description"`
}

// createWebhook answers POST /v2/webhooks with the new endpoint and its secret, which is shown only here, and to the same request with
// the same Idempotency-Key for a day.
func (s *Server) createWebhook(w http.ResponseWriter, r *http.Request, by webhookRequest) error {
	request, err := route.Decode[struct {
		URL         string                   `json:"url"`
		Types       route.Nullable[[]string] `json:"types"`
		Description route.Nullable[string]   `json:"description"`
	}](r)
	if err != nil {
		return err
	}
	body := webhookBody{URL: request.URL, Types: request.Types.Get(), Description: request.Description.Get()}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	created, secret, err := s.Webhooks.New(by.Owner, webhooks.Draft{URL: body.URL, Types: body.Types, Description: body.Description})
	if err != nil {
		return err
	}
	response, err := json.Marshal(struct {
		webhookJSON
		Secret string `json:"secret"`
	}{newWebhookJSON(created), secret.Reveal()})
	if err != nil {
		return err
	}
	if key == "" {
		err = s.Webhooks.Create(r.Context(), by.Caller, created, [32]byte{})
	} else {
		response, err = s.createWebhookOnce(w, r, by.Caller, created, key, body, response)
	}
	if err != nil {
		return err
	}
	route.WriteBody(w, http.StatusCreated, response)
	return nil
}

// createWebhookOnce stores a new endpoint with the request's idempotency key. It returns the response, which is that of the first
// request with the key.
func (s *Server) createWebhookOnce(
	w http.ResponseWriter, r *http.Request, by webhooks.Caller, created *webhooks.Endpoint, key string, body webhookBody, response []byte,
) ([]byte, error) {
	asked, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	first, replayed, err := s.Webhooks.CreateOnce(r.Context(), by, created, key, sha256.Sum256(asked), response)
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	return first, err
}
