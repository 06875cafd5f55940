package gateways

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// listEventAccounts answers the gateways' long poll GET /internal/event-accounts?after=&wait=: at once if an account had an event
// since the position, otherwise when one does or the wait is over. Without a position it returns the current one at once.
func (s *Server) listEventAccounts(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "after", "wait")
	if err != nil {
		return err
	}
	wait := wire.MaxEventAccountsWait
	if given, ok := parameters["wait"]; ok {
		if wait, err = time.ParseDuration(given); err != nil || wait < 0 || wait > wire.MaxEventAccountsWait {
			return route.Invalid(wire.Issue{Path: "wait", Message: "must be a duration up to 5s"})
		}
	}
	text, given := parameters["after"]
	if !given {
		position, err := s.Feed.Position(r.Context())
		if err != nil {
			return err
		}
		return route.WriteJSON(w, http.StatusOK, wire.EventAccounts{Position: strconv.FormatInt(position, 10), Accounts: []wire.EventAccount{}})
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return route.Invalid(wire.Issue{Path: "after", Message: "must be a position"})
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	news, err := s.Feed.Wait(ctx, after)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, wire.EventAccounts{
		Position: strconv.FormatInt(news.Position, 10),
		Accounts: route.Each(news.Owners, func(o feed.Owner) wire.EventAccount {
			return wire.EventAccount{AccountID: o.AccountID.String(), Environment: o.Environment}
		}),
	})
}
