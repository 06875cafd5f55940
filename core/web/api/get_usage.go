package api

import (
	"context"
	"net/http"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// usageSpan is how usage is cut by one value of granularity: into so many intervals, of which the last has begun. Usage is kept for 8 times 24
// hours, in which 8 days with the one that has begun lie.
type usageSpan struct {
	length    time.Duration
	intervals int
}

var usageSpans = map[string]usageSpan{
	"minute": {time.Minute, 60},
	"hour":   {time.Hour, 7 * 24},
	"day":    {24 * time.Hour, 8},
}

// since is the start of the first interval.
func (u usageSpan) since(now time.Time) time.Time {
	return now.UTC().Truncate(u.length).Add(-u.length * time.Duration(u.intervals-1))
}

type usageJSON struct {
	Granularity string              `json:"granularity"`
	Intervals   []usageIntervalJSON `json:"intervals"`
}

type usageIntervalJSON struct {
	From transfer.Timestamp `json:"from"`
	Key  usageCountsJSON    `json:"key"`
	// Account is nil where the account has more rows than are counted.
	Account *usageCountsJSON `json:"account"`
}

type usageCountsJSON struct {
	Accepted int64 `json:"accepted"`
	Limited  int64 `json:"limited"`
	Refused  int64 `json:"refused"`
}

// getUsage answers GET /v2/usage with the requests of the key, and of all keys that its account has in its environment.
func (s *Server) getUsage(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	parameters, err := route.Query(r, "granularity")
	if err != nil {
		return err
	}
	granularity, given := parameters["granularity"]
	if !given {
		granularity = "minute"
	}
	span, known := usageSpans[granularity]
	if !known {
		return route.Invalid(wire.Issue{Path: "granularity", Message: `must be "minute", "hour" or "day"`})
	}
	intervals, err := s.usageOf(r.Context(), by, span)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, usageJSON{granularity, intervals})
}

func (s *Server) usageOf(ctx context.Context, by transfer.Caller, span usageSpan) ([]usageIntervalJSON, error) {
	since := span.since(s.Now())
	ofKey, err := s.Identities.KeyUsage(ctx, by.AccountID, by.KeyID, since, span.length)
	if err != nil {
		return nil, err
	}
	ofAccount, whole, err := s.Identities.AccountUsage(ctx, by.AccountID, by.Environment, since, span.length)
	if err != nil {
		return nil, err
	}
	intervals := make([]usageIntervalJSON, span.intervals)
	for n := range intervals {
		from := since.Add(span.length * time.Duration(n))
		intervals[n].From = transfer.NewTimestamp(from)
		if !from.Before(whole) {
			intervals[n].Account = &usageCountsJSON{}
		}
	}
	at := func(u account.UsageInterval) (*usageIntervalJSON, usageCountsJSON) {
		n := min(int(u.From.Sub(since)/span.length), span.intervals-1) // a gateway's clock may be ahead
		return &intervals[n], usageCountsJSON{u.Accepted, u.Limited, u.Refused}
	}
	for _, u := range ofKey {
		interval, counts := at(u)
		interval.Key.add(counts)
	}
	for _, u := range ofAccount {
		if interval, counts := at(u); interval.Account != nil {
			interval.Account.add(counts)
		}
	}
	return intervals, nil
}

func (c *usageCountsJSON) add(more usageCountsJSON) {
	c.Accepted, c.Limited, c.Refused = c.Accepted+more.Accepted, c.Limited+more.Limited, c.Refused+more.Refused
}
