package gateways

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

const (
	// maxReportBytes allows for more than the 200 bytes of a typical row.
	maxReportBytes = 512 << 10
	// maxRequests bounds the counts of a row; a higher count is an error of the gateway.
	maxRequests = 1_000_000_000
	// maxClockSkew is how far a gateway's clock may be ahead of the database's.
	maxClockSkew = time.Hour
)

// recordUsage answers the gateways' POST /internal/usage: 204 if the report is stored, by this or an earlier request.
func (s *Server) recordUsage(w http.ResponseWriter, r *http.Request) error {
	body, err := route.ReadBodyUpTo(r, maxReportBytes)
	if err != nil {
		return err
	}
	report, err := route.DecodeBody[wire.UsageReport](body)
	if err != nil {
		return err
	}
	now := s.Now()
	reportID, usages, issues := readReport(report, now)
	if len(issues) > 0 {
		return route.Invalid(issues...)
	}
	added, err := s.Identities.RecordUsage(r.Context(), reportID, usages, now)
	if err != nil {
		return err
	}
	if added {
		route.Committed(w)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func readReport(report wire.UsageReport, now time.Time) (id uuid.UUID, usages []account.Usage, issues []wire.Issue) {
	addIssue := func(path, message string) { issues = append(issues, wire.Issue{Path: path, Message: message}) }
	id, ok := route.ParseUUID(report.ReportID)
	if !ok {
		addIssue("/reportId", "must be a UUID")
	}
	if n := len(report.Keys); n < 1 || n > wire.MaxUsageRows {
		addIssue("/keys", fmt.Sprintf("must have 1 to %d rows", wire.MaxUsageRows))
		return id, nil, issues
	}
	type rowKey struct {
		key    uuid.UUID
		minute time.Time
	}
	seen := map[rowKey]bool{}
	for i, row := range report.Keys {
		usage, faults := readRow(row, now)
		for _, issue := range faults {
			addIssue(fmt.Sprintf("/keys/%d%s", i, issue.Path), issue.Message)
		}
		current := rowKey{usage.KeyID, usage.Minute}
		if len(faults) == 0 && seen[current] {
			addIssue(fmt.Sprintf("/keys/%d", i), "has the key and minute of an earlier row")
		}
		seen[current] = true
		usages = append(usages, usage)
	}
	return id, usages, issues
}

func readRow(row wire.KeyUsage, now time.Time) (usage account.Usage, issues []wire.Issue) {
	addIssue := func(path, message string) { issues = append(issues, wire.Issue{Path: path, Message: message}) }
	usage = account.Usage{
		Minute: row.Minute.UTC(), Accepted: row.Accepted, Limited: row.Limited, Refused: row.Refused, LastUsedAt: row.LastUsedAt,
	}
	var ok bool
	if usage.KeyID, ok = route.ParseUUID(row.KeyID); !ok {
		addIssue("/keyId", "must be a UUID")
	}
	switch {
	case row.Minute.IsZero():
		addIssue("/minute", "is required")
	case !row.Minute.Equal(row.Minute.Truncate(time.Minute)):
		addIssue("/minute", "must be a whole minute")
	case row.Minute.After(now.Add(maxClockSkew)):
		addIssue("/minute", "must not be more than an hour ahead")
	}
	for _, count := range []struct {
		path string
		n    int64
	}{{"/accepted", row.Accepted}, {"/limited", row.Limited}, {"/refused", row.Refused}} {
		if count.n < 0 || count.n > maxRequests {
			addIssue(count.path, fmt.Sprintf("must be 0 to %d", maxRequests))
		}
	}
	if row.LastUsedAt.IsZero() {
		addIssue("/lastUsedAt", "is required")
	}
	return usage, issues
}
