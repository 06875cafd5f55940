package identity_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/asynctest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newService is at http://intents.example on a database of the test's own, with limits that nothing meets by chance.
func newService(t *testing.T, change ...func(*identity.Config)) *identity.Service {
	t.Helper()
	return newServiceOn(t, pgtest.New(t), change...)
}

func newServiceOn(t *testing.T, store *rooms.Rooms, change ...func(*identity.Config)) *identity.Service {
	t.Helper()
	config := identity.Config{
		Store: store.Identities, Mail: store.Mail, SignUpOpen: true, PublicURL: "http://intents.example", Log: slog.New(slog.DiscardHandler), Metrics: telemetry.NewRegistry(),
		Limits: identity.Limits{SignInPerIP: 1000, SignInPerAccount: 1000, SignInPerAccountAndIP: 1000, SignUpPerIP: 1000, KeysPerAccount: 1000, KeysPerIP: 1000, MailsPerAddress: 1000, MailsPerIP: 1000},
	}
	for _, c := range change {
		c(&config)
	}
	return identity.New(config)
}

// withoutMail is a service on the same database that sends no mail, with which a sign-up signs in.
func withoutMail(core *identity.Service) *identity.Service {
	config := core.Config
	config.MailQueued, config.Metrics = nil, telemetry.NewRegistry()
	return identity.New(config)
}

// is compares an error with the one that is expected, nil for none.
func is(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// isLimited compares whether an error is a limit's with whether it is expected to be; otherwise there must be none.
func isLimited(t *testing.T, what string, err error, want bool) {
	t.Helper()
	if _, limited := errors.AsType[*identity.LimitedError](err); limited != want || !limited && err != nil {
		t.Errorf("%s: %v, want limited = %t", what, err, want)
	}
}

// says checks that a text has some words and not others.
func says(t *testing.T, text string, has, lacks []string) {
	t.Helper()
	for _, words := range has {
		if !strings.Contains(text, words) {
			t.Errorf("no %q in:\n%s", words, text)
		}
	}
	for _, words := range lacks {
		if strings.Contains(text, words) {
			t.Errorf("there is %q in:\n%s", words, text)
		}
	}
}

// isInvalid checks that an error is about a field.
func isInvalid(t *testing.T, field string, err error) {
	t.Helper()
	if invalid, is := errors.AsType[*account.InvalidError](err); !is || invalid.Field != field {
		t.Errorf("%v, want an invalid %s", err, field)
	}
}

// ok ends the test unless a step of it succeeded.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call is the error of a call.
func call[T any](_ T, err error) error { return err }

// must returns the result of a call, or ends the test with its error.
func must[T any](result T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		ok(t, err)
		return result
	}
}

// call2 is call for a call with two results, and must2 is must for the first of them.
func call2[T, U any](_ T, _ U, err error) error { return err }

func must2[T, U any](result T, _ U, err error) func(*testing.T) T { return must(result, err) }

// equal compares a result with the one that is expected.
func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// roomsOf has the stores of a service, for another on the same database.
func roomsOf(s *identity.Service) *rooms.Rooms {
	return &rooms.Rooms{Identities: s.Store, Mail: s.Mail}
}

// waiting waits until n statements of the test's database wait for a lock.
func waiting(t *testing.T, core *identity.Service, n int) {
	t.Helper()
	asynctest.Eventually(t, "the statements wait for a lock", func() bool {
		return pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == n
	})
}

// ownerIn is an account in an environment.
func ownerIn(id uuid.UUID, environment network.Environment) feed.Owner {
	return feed.Owner{AccountID: id, Environment: environment}
}
