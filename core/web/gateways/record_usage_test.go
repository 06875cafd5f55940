package gateways_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestRecordUsage(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	first, second := s.CreateKey(t, `{"name":"first"}`, ann), s.CreateKey(t, `{"name":"second"}`, ann)
	minute := time.Now().UTC().Truncate(time.Minute)
	at := func(d time.Duration) string { return minute.Add(d).Format(time.RFC3339Nano) }

	// One row is of another zone, one of a clock that is ahead.
	report := webtest.UsageReport(uuid.NewString(),
		webtest.UsageRow(first.ID, minute.In(time.FixedZone("", -3600)), 3, 2, 1, at(-time.Second)), webtest.UsageRow(second.ID, minute, 0, 0, 7, at(30*time.Minute)))
	for range 2 { // the first reply was lost
		webtest.Same(t, report, webtest.Want(t, 204, ""), s.Call(t, "POST", "/internal/usage", report))
	}

	got := pgtest.LookUp[string](t, s.Store, `SELECT string_agg(concat_ws(' ', name, date_part('epoch', minute - $1::timestamptz), accepted, limited, refused),
		', ' ORDER BY name, minute) FROM key_usage JOIN api_keys ON api_keys.id = key_id AND api_keys.account_id = key_usage.account_id`, minute)
	if diff := cmp.Diff("first 0 3 2 1, second 0 0 0 7", got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	const lastUsed = `SELECT last_used_at FROM api_keys WHERE id = $1`
	if got := pgtest.LookUp[time.Time](t, s.Store, lastUsed, first.ID); !got.Equal(minute.Add(-time.Second)) {
		t.Errorf("the first key was last used at %s", got)
	}
	if got := pgtest.LookUp[time.Time](t, s.Store, lastUsed, second.ID); got.Before(minute) || got.After(time.Now().Add(time.Minute)) { // core reckons what the database's clock says
		t.Errorf("the second key was last used at %s, which is not now", got)
	}
	if log := s.Log.String(); strings.Contains(log, "/internal/usage") {
		t.Errorf("reports fill the log:\n%s", log)
	}
}

func TestRecordUsage_Invalid(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	id, key, minute := uuid.NewString(), uuid.NewString(), time.Now().UTC().Truncate(time.Minute)
	now := time.Now().UTC().Format(time.RFC3339Nano)
	good := webtest.UsageRow(key, minute, 1, 1, 1, now)
	many := func(n int) string {
		rows := make([]string, n)
		for i := range rows {
			rows[i] = webtest.UsageRow(uuid.NewString(), minute, 1, 1, 1, now)
		}
		return webtest.UsageReport(id, rows...)
	}
	const (
		notID, notCount = "must be a UUID", "must be 0 to 1000000000"
		notRows         = "must have 1 to 1000 rows"
	)
	for name, c := range map[string]struct {
		report string
		want   webtest.Answer
	}{
		"no report id":      {`{"keys":[` + good + `]}`, webtest.Invalid(t, "/reportId", notID)},
		"bad report id":     {webtest.UsageReport("1", good), webtest.Invalid(t, "/reportId", notID)},
		"other spelling":    {webtest.UsageReport(strings.ReplaceAll(id, "-", ""), good), webtest.Invalid(t, "/reportId", notID)},
		"no rows":           {webtest.UsageReport(id), webtest.Invalid(t, "/keys", notRows)},
		"1001 rows":         {many(1001), webtest.Invalid(t, "/keys", notRows)},
		"no key":            {webtest.UsageReport(id, good, strings.Replace(good, key, "", 1)), webtest.Invalid(t, "/keys/1/keyId", notID)},
		"minute and a half": {webtest.UsageReport(id, webtest.UsageRow(key, minute.Add(30*time.Second), 1, 1, 1, now)), webtest.Invalid(t, "/keys/0/minute", "must be a whole minute")},
		"next day":          {webtest.UsageReport(id, webtest.UsageRow(key, minute.Add(24*time.Hour), 1, 1, 1, now)), webtest.Invalid(t, "/keys/0/minute", "must not be more than an hour ahead")},
		"key alone":         {webtest.UsageReport(id, `{"keyId":"`+key+`"}`), webtest.Invalid(t, "/keys/0/minute", "is required", "/keys/0/lastUsedAt", "is required")},
		"minute twice":      {webtest.UsageReport(id, strings.Replace(good, "lastUsedAt", "minute", 1)), webtest.Invalid(t, "/keys/0/minute", "is not valid JSON: duplicate object member name")},
		"never used":        {webtest.UsageReport(id, webtest.UsageRow(key, minute, 1, 1, 1, "0001-01-01T00:00:00Z")), webtest.Invalid(t, "/keys/0/lastUsedAt", "is required")},
		"negative":          {webtest.UsageReport(id, webtest.UsageRow(key, minute, -1, 0, -5, now)), webtest.Invalid(t, "/keys/0/accepted", notCount, "/keys/0/refused", notCount)},
		"too many":          {webtest.UsageReport(id, webtest.UsageRow(key, minute, 0, 1_000_000_001, 0, now)), webtest.Invalid(t, "/keys/0/limited", notCount)},
		"twice":             {webtest.UsageReport(id, good, good), webtest.Invalid(t, "/keys/1", "has the key and minute of an earlier row")},
		"unknown field":     {webtest.UsageReport(id, strings.Replace(good, "limited", "limit", 1)), webtest.Invalid(t, "/keys/0/limit", "is not a known field")},
		"not a number":      {webtest.UsageReport(id, strings.Replace(good, `"limited":1`, `"limited":"1"`, 1)), webtest.Invalid(t, "/keys/0/limited", "must not be a JSON string")},
		"not an object":     {`[]`, webtest.Invalid(t, "", "must be an object")},
		"600 KiB":           {strings.Repeat(" ", 600<<10), webtest.Detailed(webtest.Refused(t, 413, "PAYLOAD_TOO_LARGE", "The body must not be longer than 524288 bytes."), "maxBytes", 524288.0)},
	} {
		webtest.Same(t, name, c.want, s.Call(t, "POST", "/internal/usage", c.report))
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM usage_reports`); n != 0 {
		t.Errorf("%d refused reports are stored", n)
	}
	webtest.Same(t, "1000 rows", webtest.Want(t, 204, ""), s.Call(t, "POST", "/internal/usage", many(1000)))
}
