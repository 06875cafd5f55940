package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Events reads the feed of what has happened to the intents of the key's account and environment.
type Events struct{ c *Client }

// Now is the cursor of what happens from now on.
const Now = "now"

// EventQuery chooses events.
type EventQuery struct {
	// After is the cursor behind which to read: Next of an earlier page, or Now. Empty begins with the oldest that is kept.
	After string
	// Types are names of types, a subject and ".*", or "*". None is all.
	Types []string
	// Limit is the length of a page, by default 100.
	Limit int
	// Wait is for how long, in whole seconds up to 25, an empty page is held back until there is an event.
	Wait time.Duration
}

// EventPage is a page of the feed.
type EventPage struct {
	Events []Event `json:"events"`
	// Next is the cursor to read on from. Store it together with what was made of the events.
	Next string `json:"next"`
}

// List reads a page, oldest first. CodeCursorExpired means that events behind the cursor are no longer kept: begin again without it, and
// compare with the list of transfers.
func (s *Events) List(ctx context.Context, query EventQuery) (*EventPage, error) {
	values := url.Values{}
	setNonEmpty(values, "after", query.After)
	setNonEmpty(values, "types", strings.Join(query.Types, ","))
	if query.Limit != 0 {
		values.Set("limit", strconv.Itoa(query.Limit))
	}
	if query.Wait != 0 {
		values.Set("wait", strconv.Itoa(int(query.Wait.Seconds())))
	}
	return call[EventPage](ctx, s.c, request{method: http.MethodGet, path: "/v2/events", query: values, wait: query.Wait})
}

// Get reads an event by its id, which a webhook has as webhook-id. CodeEventNotFound also means that it is no longer kept.
func (s *Events) Get(ctx context.Context, id string) (*Event, error) {
	return call[Event](ctx, s.c, request{method: http.MethodGet, path: "/v2/events/" + url.PathEscape(id)})
}

// longPoll is the longest time for which the service holds a page back.
const longPoll = 25 * time.Second

// Follow yields page after page of the feed, from the query's cursor on, and waits for the next; a page may be empty. It ends with the error
// of a request that failed three times, CodeCursorExpired among them; follow again from the Next of the last page. An account may follow with
// eight at once.
//
//	for page, err := range c.Events.Follow(ctx, client.EventQuery{After: stored}) {
//		if err != nil { … }
//		for _, event := range page.Events { … }
//		stored = page.Next
//	}
func (s *Events) Follow(ctx context.Context, query EventQuery) iter.Seq2[*EventPage, error] {
	query.Wait = longPoll
	return func(yield func(*EventPage, error) bool) {
		for {
			page, err := s.List(ctx, query)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) {
				return
			}
			query.After = page.Next
		}
	}
}
