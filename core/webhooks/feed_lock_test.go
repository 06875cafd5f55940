package webhooks_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity/access"
	"intents.internal/core/outbound"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
)

// takesFeedLock matches the statements that lock the row of feed_state.
var takesFeedLock = regexp.MustCompile(`(?s)UPDATE feed_state|FROM feed_state\s+FOR UPDATE|feed_state FOR UPDATE`)

// Taking the lock of the feed is the last thing that a transaction does, but for a round, which does nothing else: every event waits for
// that lock. The statements are those of all that takes it: rounds, new endpoints, and endpoints that are disabled with mails to a hundred
// owners.
func TestFeedLock_IsTakenLast(t *testing.T) {
	t.Parallel()
	s := newDatabase(t, outbound.NewNetworks(nil))
	watched := pgtest.Open(t, s.URL)
	var asked pgtest.Statements
	pgtest.Watch(watched, &asked)

	owner := s.Account()
	pgtest.InsertTransfer(t, s.Store, s.Known, owner.AccountID, pgtest.TransferBody)
	pgtest.Exec(t, s.Store, `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at)
		SELECT gen_random_uuid(), 'owner', 'owner' || n || '@example.com', 'hash', now(), now() FROM generate_series(1, 50) AS n`)
	pgtest.Exec(t, s.Store, `INSERT INTO members (account_id, person_id, role, created_at)
		SELECT $1, id, 'owner', now() FROM accounts WHERE id <> $1`, owner.AccountID)
	var records []webhooks.AttemptRecord
	for n := range 2 {
		e, _ := s.Endpoint(owner, fmt.Sprintf("https://example.com/%d", n))
		records = append(records, webhooks.AttemptRecord{
			Endpoint: e, Attempt: webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: 410, EndedAt: time.Now()},
		})
	}
	s.Enqueue(1, owner)
	for n := range records {
		records[n].Delivery = s.Deliveries(records[n].Endpoint)[0]
	}
	recorded, err := watched.Webhooks.RecordAttempts(t.Context(), records, true)
	if err != nil || len(recorded.Disabled) != 2 {
		t.Fatalf("%+v, %v", recorded, err)
	}
	e, _, err := s.Rules.New(owner, webhooks.Draft{URL: "https://example.com/new"}, s.Store.Now())
	pgtest.Must(t, err)
	pgtest.Must(t, watched.Webhooks.InsertWebhook(t.Context(), access.OfOperator, e, pgtest.AuditEntry(owner.AccountID, "webhook_created"), [32]byte{}))
	pgtest.AssignPositions(t, watched)

	mails := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM mails`)
	disabled, _ := pgtest.ReadFeed(t, s.Store, owner, 0)
	if mails < 100 || len(disabled) != 3 {
		t.Errorf("%d mails and %d events, want those of two disabled endpoints", mails, len(disabled))
	}
	taken := 0
	for n, statement := range asked.Text {
		if !takesFeedLock.MatchString(statement) {
			continue
		}
		taken++
		next := asked.Text[n+1]
		round := strings.Contains(statement, "FOR UPDATE") && strings.Contains(next, "WITH taken AS") && asked.Text[n+2] == "COMMIT"
		if next != "COMMIT" && !round && !strings.Contains(statement, "WITH taken AS") {
			t.Errorf("after the lock of the feed was taken by\n%s\nthere is\n%s", statement, next)
		}
	}
	if taken < 4 {
		t.Errorf("the lock was taken %d times", taken)
	}
}
