package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

const (
	// defaultEvents is the default limit of a page of events, maxEvents the maximum.
	defaultEvents, maxEvents = 100, 1000
	// maxPollWait is the longest wait for an event, in seconds.
	maxPollWait = 25
	// fromNow is the cursor for events from now on.
	fromNow = "now"
	// catchUpBudget bounds how long a reader waits for the positions of recently committed events.
	catchUpBudget = 250 * time.Millisecond
)

// eventList is a page of the feed as requested by the query parameters.
type eventList struct {
	// after is the position after which the page starts, 0 for the beginning; now is set for after=now.
	after  int64
	now    bool
	filter feed.Filter
	limit  int
	// wait is in seconds.
	wait int
}

// listEvents answers GET /v2/events with the events of the account in the environment of its key, at once. If the page is empty
// and the client may wait, a header tells the gateway how long it may hold the page back.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	owner := feed.Owner{AccountID: by.AccountID, Environment: by.Environment}
	list, err := parseEventList(r, owner)
	if err != nil {
		return err
	}
	page, err := s.readEvents(r.Context(), owner, list)
	if err != nil {
		return err
	}
	body := route.NewBuffer()
	defer body.Release()
	if body.Bytes, err = appendEventPage(body.Bytes, owner, page); err != nil {
		return err
	}
	if list.wait > 0 && len(page.Events) == 0 && page.End {
		w.Header().Set(wire.HeaderPollWait, strconv.Itoa(list.wait))
	}
	route.WriteBody(w, http.StatusOK, body.Bytes)
	return nil
}

func (s *Server) readEvents(ctx context.Context, owner feed.Owner, list eventList) (feed.EventPage, error) {
	if list.now {
		// A client that reads from now on must not get events that were committed before.
		if err := s.Feed.CatchUp(ctx); err != nil {
			return feed.EventPage{}, err
		}
		position, err := s.Events.LatestPosition(ctx)
		return feed.EventPage{Next: position, End: true}, err
	}
	if list.wait == 0 { // a waiting client is notified of events that have no position yet
		if err := s.catchUp(ctx); err != nil {
			return feed.EventPage{}, err
		} // later events are on a later page
	}
	return s.Events.EventPage(ctx, owner, list.after, list.filter, list.limit)
}

// catchUp waits until recently committed events have their positions, for catchUpBudget at most.
func (s *Server) catchUp(ctx context.Context) error {
	budget, cancel := context.WithTimeout(ctx, catchUpBudget)
	defer cancel()
	if err := s.Feed.CatchUp(budget); err != nil && budget.Err() == nil && !postgres.Unavailable(err) {
		return err
	}
	return nil
}

// appendEventPage appends a page of events, and the cursor of the next page.
func appendEventPage(b []byte, owner feed.Owner, page feed.EventPage) (_ []byte, err error) {
	if b, err = appendEvents(append(b, '{'), page.Events); err != nil {
		return nil, err
	}
	b = append(b, `,"next":`...)
	b = transfer.AppendText(b, feed.FormatCursor(owner, page.Next))
	return append(b, '}'), nil
}

// appendEvents appends the member "events".
func appendEvents(b []byte, events []feed.Event) (_ []byte, err error) {
	b = append(b, `"events":[`...)
	for n := range events {
		if n > 0 {
			b = append(b, ',')
		}
		if b, err = events[n].AppendJSON(b); err != nil {
			return nil, fmt.Errorf("write the event %s: %w", events[n].ID, err)
		}
	}
	return append(b, ']'), nil
}

func parseEventList(r *http.Request, owner feed.Owner) (list eventList, err error) {
	parameters, err := route.Query(r, "after", "limit", "types", "wait")
	if err != nil {
		return list, err
	}
	list.limit = defaultEvents
	var issues []wire.Issue
	for name, given := range parameters {
		if err := list.set(owner, name, given); err != nil {
			issues = append(issues, wire.Issue{Path: name, Message: err.Error()})
		}
	}
	if len(issues) > 0 {
		slices.SortFunc(issues, func(a, b wire.Issue) int { return strings.Compare(a.Path, b.Path) })
		return list, route.Invalid(issues...)
	}
	return list, nil
}

// set parses one parameter; its error is the message for the client.
func (list *eventList) set(owner feed.Owner, name, given string) (err error) {
	switch name {
	case "after":
		if list.now = given == fromNow; !list.now {
			list.after, err = feed.ParseCursor(owner, given)
		}
	case "types":
		list.filter, err = feed.ParseFilter(given)
	case "limit":
		list.limit, err = route.WholeNumber(given, 1, maxEvents)
	case "wait":
		list.wait, err = route.WholeNumber(given, 0, maxPollWait)
	}
	return err
}
