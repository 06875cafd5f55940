package mail_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/mail"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/metricstest"
)

// compose writes a mail to everybody but nobody@example.com.
func compose(_ context.Context, queued *mail.Queued) (*mail.Message, error) {
	if queued.Recipient == "nobody@example.com" {
		return nil, nil
	}
	return mail.Write(queued.Recipient, mail.ResetPassword, mail.Link{Service: "intents.example", URL: "https://intents.example/x", ValidFor: time.Hour})
}

// composers compose the only kind of these tests.
var composers = mail.Composers{mail.KindResetPassword: compose}

// runOutbox sends the mails of a database to a server until the test ends.
func runOutbox(t *testing.T, store *rooms.Rooms, s *mailServer) (*mail.Outbox, *prometheus.Registry) {
	t.Helper()
	client, err := mail.NewSMTP(mail.SMTPConfig{URL: "smtp://" + s.Address, From: from, Domain: "intents.example"})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	outbox := mail.NewOutbox(store.Mail, client, slog.New(slog.DiscardHandler), registry)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { outbox.Run(ctx, composers) })
	t.Cleanup(func() { stop(); running.Wait() })
	return outbox, registry
}

func queue(t *testing.T, store *rooms.Rooms, recipients ...string) {
	t.Helper()
	for _, recipient := range recipients {
		if err := store.Mail.Insert(t.Context(), mail.Draft{Kind: mail.KindResetPassword, Recipient: recipient}); err != nil {
			t.Fatal(err)
		}
	}
}

func queued(t *testing.T, store *rooms.Rooms) int {
	t.Helper()
	return pgtest.LookUp[int](t, store, `SELECT count(*) FROM mails`)
}

// Several cores on one database send each mail once.
func TestOutbox_Cores(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	s := startSMTP(t, embedded.SMTPConfig{})
	const mails = 60
	want := map[string]int{}
	for n := range mails {
		recipient := fmt.Sprintf("person-%d@example.com", n)
		queue(t, store, recipient)
		want[recipient] = 1
	}
	for range 3 {
		runOutbox(t, pgtest.Open(t, url), s)
	}
	got := map[string]int{}
	for range mails {
		got[(<-s.mails).To[0]]++
	}
	asynctest.Eventually(t, "the outbox is empty", func() bool { return queued(t, store) == 0 })
	if diff := cmp.Diff(want, got); diff != "" || len(s.mails) > 0 {
		t.Errorf("%d more (-want +got):\n%s", len(s.mails), diff)
	}
}

// What fails is tried again with growing pauses, and given up after 12 attempts or 4 hours; what is refused for good is not repeated.
func TestOutbox_Failures(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	var down atomic.Bool
	down.Store(true)
	s := startSMTP(t, embedded.SMTPConfig{Accept: func(recipient string) error {
		switch {
		case recipient == "unknown@example.com":
			return &embedded.SMTPRefusal{Code: 550, Text: "no such mailbox"}
		case down.Load():
			return &embedded.SMTPRefusal{Code: 451, Text: "later"}
		default:
			return nil
		}
	}})
	outbox, registry := runOutbox(t, store, s)
	attempts := func(outcome string) float64 {
		return metricstest.Values(t, registry)["intents_core_mail_attempts_total "+outcome]
	}
	await := func(what string, happened func() bool) {
		t.Helper()
		asynctest.Eventually(t, what, func() bool { outbox.Wake(); return happened() })
	}

	queue(t, store, "nobody@example.com")
	await("nothing was to be sent", func() bool { return attempts("nothing") == 1 && queued(t, store) == 0 })
	queue(t, store, "unknown@example.com")
	await("the recipient is refused", func() bool { return attempts("refused") == 1 && queued(t, store) == 0 })

	queue(t, store, "ann@example.com")
	const pause = `SELECT coalesce(max(ceil(extract(epoch FROM next_attempt_at - clock_timestamp()) / 10)::integer * 10), -1) FROM mails WHERE attempts = $1`
	for attempt, wait := range []int{10, 20, 40, 80} {
		await(fmt.Sprintf("attempt %d", attempt+1), func() bool {
			pgtest.Exec(t, store, `UPDATE mails SET next_attempt_at = clock_timestamp() WHERE attempts = $1 AND next_attempt_at > clock_timestamp()`, attempt)
			return pgtest.LookUp[int](t, store, pause, attempt+1) == wait
		})
	}
	down.Store(false)
	await("the mail is sent", func() bool {
		pgtest.Exec(t, store, `UPDATE mails SET next_attempt_at = clock_timestamp() WHERE attempts = 4`)
		return attempts("sent") == 1 && queued(t, store) == 0
	})
	if got := <-s.mails; got.To[0] != "ann@example.com" {
		t.Errorf("sent to %q", got.To)
	}

	queue(t, store, "old@example.com", "tried@example.com")
	pgtest.Exec(t, store, `UPDATE mails SET created_at = created_at - interval '5 hours' WHERE recipient LIKE 'old%'`)
	pgtest.Exec(t, store, `UPDATE mails SET attempts = 12 WHERE recipient LIKE 'tried%'`)
	await("both are given up", func() bool { return queued(t, store) == 0 })
	if total := attempts("sent") + attempts("dropped"); total != 3 { // a sender may have been faster than the test
		t.Errorf("%v were sent and %v dropped", attempts("sent"), attempts("dropped"))
	}
}

// A core that ended while it had a mail leaves it to another one, and one that is slow does not put it off.
func TestOutbox_Lease(t *testing.T) {
	t.Parallel()
	store, kinds := pgtest.New(t), []mail.Kind{mail.KindResetPassword}
	queue(t, store, "ann@example.com")
	taken, err := store.Mail.Lease(t.Context(), kinds, time.Minute)
	if err != nil || taken == nil || taken.Recipient != "ann@example.com" || taken.Attempts != 1 {
		t.Fatalf("%+v, %v", taken, err)
	}
	if again, err := store.Mail.Lease(t.Context(), kinds, time.Minute); again != nil || err != nil {
		t.Errorf("leased twice: %+v, %v", again, err)
	}
	pgtest.Exec(t, store, `UPDATE mails SET next_attempt_at = clock_timestamp()`)
	next, err := store.Mail.Lease(t.Context(), kinds, time.Minute)
	if err != nil || next == nil || next.Attempts != 2 {
		t.Fatalf("after the lease: %+v, %v", next, err)
	}
	if err := store.Mail.Retry(t.Context(), taken, 0); err != nil {
		t.Fatal(err)
	}
	if again, err := store.Mail.Lease(t.Context(), kinds, time.Minute); again != nil || err != nil {
		t.Errorf("the first holder has ended the second's lease: %+v, %v", again, err)
	}
	// A kind of a later version waits for a core of it.
	pgtest.Exec(t, store, `UPDATE mails SET kind = 'later', next_attempt_at = clock_timestamp()`)
	if unknown, err := store.Mail.Lease(t.Context(), kinds, time.Minute); unknown != nil || err != nil {
		t.Errorf("of another version: %+v, %v", unknown, err)
	}
	if row := pgtest.LookUp[string](t, store, `SELECT mails::text FROM mails`); strings.Contains(row, "http") {
		t.Errorf("the outbox has a link: %s", row)
	}
}

// A core that is shut down while a mail is on its way does not leave it to be sent again.
func TestOutbox_Shutdown(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	s := startSMTP(t, embedded.SMTPConfig{Received: func(embedded.Mail) error { stop(); return nil }})
	client, err := mail.NewSMTP(mail.SMTPConfig{URL: "smtp://" + s.Address, From: from, Domain: "intents.example"})
	if err != nil {
		t.Fatal(err)
	}
	queue(t, store, "ann@example.com")
	mail.NewOutbox(store.Mail, client, slog.New(slog.DiscardHandler), prometheus.NewRegistry()).Run(ctx, composers)
	if got := <-s.mails; got.To[0] != "ann@example.com" || queued(t, store) != 0 {
		t.Errorf("sent to %q, and %d rows are left", got.To, queued(t, store))
	}
}
