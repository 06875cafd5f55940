package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
)

// usageRow is a row of a report; lastUsed is a time.
func usageRow(keyID string, minute time.Time, accepted, limited, refused int, lastUsed string) string {
	return fmt.Sprintf(`{"keyId":%q,"minute":%q,"accepted":%d,"limited":%d,"refused":%d,"lastUsedAt":%q}`,
		keyID, minute.Format(time.RFC3339), accepted, limited, refused, lastUsed)
}

func usageReport(id string, rows ...string) string {
	return fmt.Sprintf(`{"reportId":%q,"keys":[%s]}`, id, strings.Join(rows, ","))
}

func TestRecordUsage(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	first, second := createKey(t, s, `{"name":"first"}`, ann), createKey(t, s, `{"name":"second"}`, ann)
	minute := time.Now().UTC().Truncate(time.Minute)
	report := func(report string) {
		t.Helper()
		same(t, report, want(t, 204, ""), s.call(t, "POST", "/internal/usage", report))
	}
	at := func(d time.Duration) string { return minute.Add(d).Format(time.RFC3339Nano) }

	report1 := usageReport(uuid.NewString(),
		usageRow(first.ID, minute, 3, 2, 1, at(-time.Second)), usageRow(first.ID, minute.Add(-time.Minute), 4, 0, 0, at(-time.Minute)),
		usageRow(second.ID, minute, 0, 0, 7, at(-2*time.Second)), usageRow(uuid.NewString(), minute, 1, 1, 1, at(0)))
	for range 3 { // its replies were lost
		report(report1)
	}
	// The same again is another report, here in another zone; it is older and from a clock that is ahead.
	report(usageReport(uuid.NewString(), usageRow(first.ID, minute.In(time.FixedZone("", -3600)), 10, 0, 0, at(-time.Hour)),
		usageRow(second.ID, minute, 5, 0, 0, at(30*time.Minute))))

	got := pgtest.LookUp[string](t, s.store, `SELECT string_agg(concat_ws(' ', name, date_part('epoch', minute - $1::timestamptz), accepted, limited, refused),
		', ' ORDER BY name, minute) FROM key_usage JOIN api_keys ON api_keys.id = key_id AND api_keys.account_id = key_usage.account_id`, minute)
	if diff := cmp.Diff("first -60 4 0 0, first 0 13 2 1, second 0 5 0 7", got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	const lastUsed = `SELECT last_used_at FROM api_keys WHERE id = $1`
	if got := pgtest.LookUp[time.Time](t, s.store, lastUsed, first.ID); !got.Equal(minute.Add(-time.Second)) {
		t.Errorf("the first key was last used at %s", got)
	}
	if got := pgtest.LookUp[time.Time](t, s.store, lastUsed, second.ID); got.Before(minute) || got.After(time.Now().Add(time.Minute)) { // core reckons what the database's clock says
		t.Errorf("the second key was last used at %s, which is not now", got)
	}
	if log := s.log.String(); strings.Contains(log, "/internal/usage") {
		t.Errorf("reports fill the log:\n%s", log)
	}
}

func TestRecordUsage_Invalid(t *testing.T) {
	t.Parallel()
	s := start(t)
	id, key, minute := uuid.NewString(), uuid.NewString(), time.Now().UTC().Truncate(time.Minute)
	now := time.Now().UTC().Format(time.RFC3339Nano)
	good := usageRow(key, minute, 1, 1, 1, now)
	many := func(n int) string {
		rows := make([]string, n)
		for i := range rows {
			rows[i] = usageRow(uuid.NewString(), minute, 1, 1, 1, now)
		}
		return usageReport(id, rows...)
	}
	const (
		notID, notCount = "must be a UUID", "must be 0 to 1000000000"
		notRows         = "must have 1 to 1000 rows"
	)
	for name, c := range map[string]struct {
		report string
		want   answer
	}{
		"no report id":      {`{"keys":[` + good + `]}`, invalid(t, "/reportId", notID)},
		"bad report id":     {usageReport("1", good), invalid(t, "/reportId", notID)},
		"other spelling":    {usageReport(strings.ReplaceAll(id, "-", ""), good), invalid(t, "/reportId", notID)},
		"no rows":           {usageReport(id), invalid(t, "/keys", notRows)},
		"1001 rows":         {many(1001), invalid(t, "/keys", notRows)},
		"no key":            {usageReport(id, good, strings.Replace(good, key, "", 1)), invalid(t, "/keys/1/keyId", notID)},
		"minute and a half": {usageReport(id, usageRow(key, minute.Add(30*time.Second), 1, 1, 1, now)), invalid(t, "/keys/0/minute", "must be a whole minute")},
		"next day":          {usageReport(id, usageRow(key, minute.Add(24*time.Hour), 1, 1, 1, now)), invalid(t, "/keys/0/minute", "must not be more than an hour ahead")},
		"key alone":         {usageReport(id, `{"keyId":"`+key+`"}`), invalid(t, "/keys/0/minute", "is required", "/keys/0/lastUsedAt", "is required")},
		"minute twice":      {usageReport(id, strings.Replace(good, "lastUsedAt", "minute", 1)), invalid(t, "/keys/0/minute", "is not valid JSON: duplicate object member name")},
		"never used":        {usageReport(id, usageRow(key, minute, 1, 1, 1, "0001-01-01T00:00:00Z")), invalid(t, "/keys/0/lastUsedAt", "is required")},
		"negative":          {usageReport(id, usageRow(key, minute, -1, 0, -5, now)), invalid(t, "/keys/0/accepted", notCount, "/keys/0/refused", notCount)},
		"too many":          {usageReport(id, usageRow(key, minute, 0, 1_000_000_001, 0, now)), invalid(t, "/keys/0/limited", notCount)},
		"twice":             {usageReport(id, good, good), invalid(t, "/keys/1", "has the key and minute of an earlier row")},
		"unknown field":     {usageReport(id, strings.Replace(good, "limited", "limit", 1)), invalid(t, "/keys/0/limit", "is not a known field")},
		"not a number":      {usageReport(id, strings.Replace(good, `"limited":1`, `"limited":"1"`, 1)), invalid(t, "/keys/0/limited", "must not be a JSON string")},
		"not an object":     {`[]`, invalid(t, "", "must be an object")},
		"600 KiB":           {strings.Repeat(" ", 600<<10), detailed(refused(t, 413, "PAYLOAD_TOO_LARGE", "The body must not be longer than 524288 bytes."), "maxBytes", 524288.0)},
	} {
		same(t, name, c.want, s.call(t, "POST", "/internal/usage", c.report))
	}
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM usage_reports`); n != 0 {
		t.Errorf("%d refused reports are stored", n)
	}
	same(t, "1000 rows", want(t, 204, ""), s.call(t, "POST", "/internal/usage", many(1000)))
}
