package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Usage counts requests.
type Usage struct{ c *Client }

// UsageGranularity is how long an interval of usage is.
type UsageGranularity string

// Granularities: of the last hour, the last 7 days and the last 8 days.
const (
	UsageGranularityMinute UsageGranularity = "minute"
	UsageGranularityHour   UsageGranularity = "hour"
	UsageGranularityDay    UsageGranularity = "day"
)

// UsageReport are the requests of a key and of its account.
type UsageReport struct {
	Granularity UsageGranularity `json:"granularity"`
	// Intervals are oldest first, also those without a request.
	Intervals []UsageInterval `json:"intervals"`
}

// UsageInterval has the requests of one interval.
type UsageInterval struct {
	From time.Time   `json:"from"`
	Key  UsageCounts `json:"key"`
	// Account counts all keys that the account has in the key's environment. It is nil in older intervals of an account with very many counts.
	Account *UsageCounts `json:"account"`
}

// UsageCounts are requests by what became of them: sent on, over a rate limit, or refused for another reason.
type UsageCounts struct {
	Accepted int64 `json:"accepted"`
	Limited  int64 `json:"limited"`
	Refused  int64 `json:"refused"`
}

// Get returns the requests of the client's key and of its account, by minute where granularity is empty. Counts are some seconds late.
func (s *Usage) Get(ctx context.Context, granularity UsageGranularity) (*UsageReport, error) {
	query := url.Values{}
	setNonEmpty(query, "granularity", string(granularity))
	var usage UsageReport
	if _, err := s.c.do(ctx, request{method: http.MethodGet, path: "/v2/usage", query: query}, &usage); err != nil {
		return nil, err
	}
	return &usage, nil
}
