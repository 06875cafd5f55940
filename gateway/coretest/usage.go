package coretest

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/wire"
)

// Counts is what a key's requests came to.
type Counts struct{ Accepted, Limited, Refused int64 }

// Reports are the usage reports that have arrived so far, those that came again included.
func (c *Core) Reports() []wire.UsageReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]wire.UsageReport(nil), c.reports...)
}

// Usage adds up, by key id, what the reports say; each report counts once, as in core.
func (c *Core) Usage() map[string]Counts {
	stored, sums := map[string]bool{}, map[string]Counts{}
	for _, report := range c.Reports() {
		if stored[report.ReportID] {
			continue
		}
		stored[report.ReportID] = true
		for _, row := range report.Keys {
			sum := sums[row.KeyID]
			sum.Accepted += row.Accepted
			sum.Limited += row.Limited
			sum.Refused += row.Refused
			sums[row.KeyID] = sum
		}
	}
	return sums
}

func (c *Core) recordUsage(w http.ResponseWriter, r *http.Request) {
	var report wire.UsageReport
	if err := decode(r, &report); err != nil || !storable(report) {
		refuse(w, http.StatusBadRequest, wire.InvalidRequest)
		return
	}
	if c.UsageDown.Load() {
		refuse(w, http.StatusServiceUnavailable, wire.ServiceUnavailable)
		return
	}
	c.mu.Lock()
	c.reports = append(c.reports, report)
	c.mu.Unlock()
	if c.LostReplies.Add(-1) >= 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusNoContent)
}

// storable tells whether core would store the report, whose keys may have any id here: tests call them by readable names.
func storable(report wire.UsageReport) bool {
	type place struct {
		key    string
		minute time.Time
	}
	seen := map[place]bool{}
	for _, row := range report.Keys {
		here := place{row.KeyID, row.Minute}
		if seen[here] || !row.Minute.Equal(row.Minute.Truncate(time.Minute)) || row.Minute.IsZero() ||
			min(row.Accepted, row.Limited, row.Refused) < 0 || row.LastUsedAt.IsZero() {
			return false
		}
		seen[here] = true
	}
	return uuid.Validate(report.ReportID) == nil && len(seen) > 0 && len(seen) <= wire.MaxUsageRows
}
