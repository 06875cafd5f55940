package api

import (
	"context"
	"errors"
	"net/http"

	"intents.internal/core/feed"
	"intents.internal/core/web/route"
)

// getEvent answers GET /v2/events/{id} with an event of the feed of the key's environment.
func (s *Server) getEvent(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	id, ok := feed.ParseID(r.PathValue("id"))
	if !ok {
		return feed.ErrEventNotFound
	}
	event, err := s.findEvent(r.Context(), feed.Owner{AccountID: by.AccountID, Environment: by.Environment}, id)
	if err != nil {
		return err
	}
	body := route.NewBuffer()
	defer body.Release()
	if body.Bytes, err = event.AppendJSON(body.Bytes); err != nil {
		return err
	}
	route.WriteBody(w, http.StatusOK, body.Bytes)
	return nil
}

// findEvent looks again once recent events have their positions: the client may have the id of the list of an intent's events, which has an
// event before the feed does.
func (s *Server) findEvent(ctx context.Context, owner feed.Owner, id feed.ID) (feed.Event, error) {
	event, err := s.Events.Find(ctx, owner, id)
	if !errors.Is(err, feed.ErrEventNotFound) {
		return event, err
	}
	if err := s.catchUp(ctx); err != nil {
		return feed.Event{}, err
	}
	return s.Events.Find(ctx, owner, id)
}
