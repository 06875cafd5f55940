package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/client"
)

// usage reads what the key is told.
func (s *service) usage(t *testing.T, query string, key ...string) map[time.Time]client.UsageInterval {
	t.Helper()
	response := s.Send(t, http.MethodGet, "/v2/usage"+query, "", key...)
	var report client.UsageReport
	if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &report); err != nil {
		t.Fatal(err)
	}
	intervals := map[time.Time]client.UsageInterval{}
	for n, interval := range report.Intervals {
		if n > 0 && !interval.From.After(report.Intervals[n-1].From) {
			t.Errorf("%s does not follow %s", interval.From, report.Intervals[n-1].From)
		}
		intervals[interval.From] = interval
	}
	return intervals
}

const insertUsage = `INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused) VALUES ($1, $2, $3, $4, $5, $6)`

func TestGetUsage(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.SignUp(t, "ann@example.com")
	own, other := s.CreateKey(t, `{"name":"own"}`, ann), s.CreateKey(t, `{"name":"other"}`, ann)
	live := s.CreateKey(t, `{"name":"live","environment":"live"}`, ann)
	owner := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT account_id FROM api_keys WHERE id = $1`, own.ID)
	now := pgtest.Now().UTC().Truncate(time.Minute)
	earlier := now.Add(-50 * time.Minute)
	pgtest.Exec(t, s.Store, insertUsage, owner, now, own.ID, 3, 2, 1)
	pgtest.Exec(t, s.Store, insertUsage, owner, now, other.ID, 10, 0, 0)
	pgtest.Exec(t, s.Store, insertUsage, owner, now, live.ID, 500, 500, 500)
	pgtest.Exec(t, s.Store, insertUsage, owner, earlier, other.ID, 20, 0, 4)
	pgtest.Exec(t, s.Store, insertUsage, owner, now.Add(-9*24*time.Hour), own.ID, 9, 9, 9)
	pgtest.Exec(t, s.Store, insertUsage, uuid.New(), now, own.ID, 7, 7, 7)
	ofOwn := []string{"X-Account-Id", owner.String(), "X-Key-Id", own.ID, "X-Key-Env", "test"}
	for query, span := range map[string]struct {
		length    time.Duration
		intervals int
	}{
		"": {time.Minute, 60}, "?granularity=minute": {time.Minute, 60}, "?granularity=hour": {time.Hour, 168}, "?granularity=day": {24 * time.Hour, 8},
	} {
		want := map[time.Time]client.UsageInterval{}
		add := func(at time.Time, key, account client.UsageCounts) {
			from := at.Truncate(span.length)
			known := want[from]
			if known.Account == nil {
				known.From, known.Account = from, &client.UsageCounts{}
			}
			plus(&known.Key, key)
			plus(known.Account, account)
			want[from] = known
		}
		add(now, client.UsageCounts{Accepted: 3, Limited: 2, Refused: 1}, client.UsageCounts{Accepted: 13, Limited: 2, Refused: 1})
		add(earlier, client.UsageCounts{}, client.UsageCounts{Accepted: 20, Refused: 4})
		got := s.usage(t, query, ofOwn...)
		if len(got) != span.intervals {
			t.Errorf("%q: %d intervals", query, len(got))
		}
		for from, interval := range got {
			if interval.Account != nil && *interval.Account == (client.UsageCounts{}) && interval.Key == *interval.Account {
				delete(got, from)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	webtest.Same(t, "another word", webtest.Invalid(t, "granularity", `must be "minute", "hour" or "day"`), s.Call(t, "GET", "/v2/usage?granularity=week", "", ofOwn...))
	webtest.Same(t, "no parameter", webtest.Invalid(t, "from", "is not a known parameter"), s.Call(t, "GET", "/v2/usage?from=1", "", ofOwn...))
}

func plus(to *client.UsageCounts, more client.UsageCounts) {
	to.Accepted, to.Limited, to.Refused = to.Accepted+more.Accepted, to.Limited+more.Limited, to.Refused+more.Refused
}

// Of the account 10,000 rows are read at most. What may be more than was counted is null, and the key is counted all the same.
func TestGetUsage_Bounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := s.CreateKey(t, `{"name":"own"}`, s.SignUp(t, "ann@example.com"))
	owner := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT account_id FROM api_keys WHERE id = $1`, key.ID)
	now := pgtest.Now().UTC().Truncate(time.Minute)
	full, before := now.Add(-20*time.Minute), now.Add(-40*time.Minute)
	pgtest.Exec(t, s.Store, insertUsage, owner, now, key.ID, 1, 0, 0)
	pgtest.Exec(t, s.Store, insertUsage, owner, before, key.ID, 2, 0, 0)
	pgtest.Exec(t, s.Store, `INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused)
		SELECT $1, $2, gen_random_uuid(), 1, 0, 0 FROM generate_series(1, 10000)`, owner, full)
	got := s.usage(t, "", "X-Account-Id", owner.String(), "X-Key-Id", key.ID, "X-Key-Env", "test")
	for _, want := range []client.UsageInterval{
		{From: now, Key: client.UsageCounts{Accepted: 1}, Account: &client.UsageCounts{Accepted: 1}},
		{From: full.Add(time.Minute), Account: &client.UsageCounts{}},
		{From: full},
		{From: before, Key: client.UsageCounts{Accepted: 2}},
	} {
		if diff := cmp.Diff(want, got[want.From]); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", want.From, diff)
		}
	}
}
