package intents_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// service is the service on a database of the test's own, with the registry of pgtest. It records what its hooks are told.
type service struct {
	*intents.Service
	store *rooms.Rooms

	mu                sync.Mutex
	created, reported []string
}

func start(t *testing.T) *service {
	t.Helper()
	s := &service{store: pgtest.New(t)}
	pgtest.LoadRegistry(t, s.store)
	live, err := registry.NewLiveRegistry(t.Context(), s.store.Registry)
	if err != nil {
		t.Fatal(err)
	}
	s.Service = intents.New(intents.Config{
		Store: s.store.Intents, Registry: live,
		Created: func(i *transfer.Intent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.created = append(s.created, i.ID.String())
		},
		Reported: func(source caip.ChainID, accountID, transferID uuid.UUID, hash common.Hash) {
			s.reported = append(s.reported, fmt.Sprint(source, accountID, transferID, hash))
		},
	})
	return s
}

func caller(env network.Environment) transfer.Caller {
	return transfer.Caller{AccountID: uuid.New(), KeyID: uuid.New(), Environment: env}
}

// request is a transfer of an amount of USDC on Sepolia.
func request(t *testing.T, amount string) wire.TransferRequest {
	t.Helper()
	r := pgtest.ParseRequest(t, pgtest.TransferBody)
	r.Source.Amount = amount
	return r
}

func (s *service) create(t *testing.T, by transfer.Caller) *transfer.Intent {
	t.Helper()
	return s.createOf(t, by, pgtest.TransferBody).Intent
}

func (s *service) createOf(t *testing.T, by transfer.Caller, body string) *intents.Record {
	t.Helper()
	record, _, err := s.Create(t.Context(), by, pgtest.ParseRequest(t, body), "")
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// A refused request makes no intent, and the watcher of chains hears of every intent that was made or found.
func TestCreate(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := caller(network.Test)
	if _, _, err := s.Create(t.Context(), ann, request(t, "0"), "order-1"); !isRejection(err, transfer.InvalidAmount) {
		t.Errorf("an amount of zero: %v", err)
	}
	var environment *intents.EnvironmentError
	if _, _, err := s.Create(t.Context(), caller(network.Live), request(t, "5"), "order-1"); !errors.As(err, &environment) ||
		*environment != (intents.EnvironmentError{Chain: caip.EIP155Chain(11155111), Environment: network.Test, Key: network.Live}) {
		t.Errorf("a live key: %v", err)
	}
	var want []string
	for n, c := range []struct {
		key      string
		replayed bool
	}{{"order-1", false}, {"order-1", true}, {"", false}, {"order-2", false}} {
		record, replayed, err := s.Create(t.Context(), ann, request(t, "5"), c.key)
		if err != nil || replayed != c.replayed || record.Tx == nil {
			t.Fatalf("%d: replayed %t, %+v, %v", n, replayed, record, err)
		}
		want = append(want, record.Intent.ID.String())
	}
	if want[0] != want[1] || want[0] == want[2] {
		t.Errorf("made or found %q", want)
	}
	if diff := cmp.Diff(want, s.created); diff != "" {
		t.Errorf("the hook (-want +got):\n%s", diff)
	}
	if _, _, err := s.Create(t.Context(), ann, request(t, "6"), "order-1"); !errors.Is(err, postgres.ErrKeyReused) {
		t.Errorf("another request: %v", err)
	}
}

func isRejection(err error, code wire.Code) bool {
	var rejection *transfer.Rejection
	return errors.As(err, &rejection) && rejection.Code == code
}

// A repeated request gets the first record again, whatever has become of the intent or of the registry since, but without a
// transaction that must not be sent any more.
func TestCreate_ReplayedAfterChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := caller(network.Test)
	first, _, err := s.Create(t.Context(), ann, request(t, "5"), "order-1")
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, s.store, "DELETE FROM tokens WHERE symbol = 'USDC'")
	if err := s.Registry.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Create(t.Context(), ann, request(t, "5"), "order-2"); !isRejection(err, transfer.UnknownToken) {
		t.Errorf("the token has left the registry: %v", err)
	}
	again, replayed, err := s.Create(t.Context(), ann, request(t, "5"), "order-1")
	if err != nil || !replayed || again.Intent.ID != first.Intent.ID || again.Tx == nil {
		t.Errorf("replayed %t: %+v, %v", replayed, again, err)
	}
	if _, err := s.Cancel(t.Context(), first.Intent); err != nil {
		t.Fatal(err)
	}
	again, _, err = s.Create(t.Context(), ann, request(t, "5"), "order-1")
	if err != nil || again.Intent.Status != transfer.Created || again.Tx != nil {
		t.Errorf("after it was cancelled: %+v, %v", again, err)
	}
}

// Any number of copies that arrive together make one intent.
func TestCreate_Concurrent(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, wanted := caller(network.Test), request(t, "5")
	ids := make([]string, 64)
	var work sync.WaitGroup
	for n := range ids {
		work.Go(func() {
			record, _, err := s.Create(t.Context(), ann, wanted, "order-1")
			if err != nil {
				t.Error(err)
				return
			}
			ids[n] = record.Intent.ID.String()
		})
	}
	work.Wait()
	if made := pgtest.LookUp[string](t, s.store, "SELECT string_agg(id::text, ' ') FROM transfers"); strings.Join(ids, " ") != strings.TrimSpace(strings.Repeat(made+" ", len(ids))) {
		t.Errorf("made %s, got %q", made, ids)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := caller(network.Test)
	made := s.create(t, ann)
	for _, name := range []string{made.ID.String(), common.Hash(made.OrderID).Hex()} {
		if found, err := s.Find(t.Context(), ann.AccountID, name); err != nil || found.ID != made.ID {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		if _, err := s.Find(t.Context(), uuid.New(), name); !errors.Is(err, intents.ErrTransferNotFound) {
			t.Errorf("%s of another account: %v", name, err)
		}
	}
	for _, name := range []string{"", "me", "{" + made.ID.String() + "}", "urn:uuid:" + made.ID.String(), uuid.NewString()} {
		if _, err := s.Find(t.Context(), ann.AccountID, name); !errors.Is(err, intents.ErrTransferNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	live := ann
	live.Environment = network.Live
	if found, err := s.FindForChange(t.Context(), ann, made.ID.String()); err != nil || found.ID != made.ID {
		t.Errorf("to change: %+v, %v", found, err)
	}
	var environment *intents.EnvironmentError
	if _, err := s.FindForChange(t.Context(), live, made.ID.String()); !errors.As(err, &environment) {
		t.Errorf("to change with a live key: %v", err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := caller(network.Test)
	made := s.create(t, ann)
	for range 2 {
		if cancelled, err := s.Cancel(t.Context(), made); err != nil || cancelled.Status != transfer.Cancelled {
			t.Errorf("%+v, %v", cancelled, err)
		}
	}
	made = s.create(t, ann)
	if _, err := s.Report(t.Context(), access.OfOperator, made, common.Hash{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(t.Context(), made); !errors.Is(err, transfer.ErrTransition) {
		t.Errorf("a submitted intent: %v", err)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := caller(network.Test)
	made := s.create(t, ann)
	for _, hash := range []common.Hash{{1}, {1}, {2}} {
		if reported, err := s.Report(t.Context(), access.OfOperator, made, hash); err != nil || reported.Status != transfer.Submitted {
			t.Errorf("%+v, %v", reported, err)
		}
	}
	var want []string
	for _, hash := range []common.Hash{{1}, {2}} {
		want = append(want, fmt.Sprint(made.Source.Account.Chain, ann.AccountID, made.ID, hash))
	}
	if diff := cmp.Diff(want, s.reported); diff != "" {
		t.Errorf("the hook (-want +got):\n%s", diff)
	}
	for n := range 48 {
		if _, err := s.Report(t.Context(), access.OfOperator, made, common.Hash{3, byte(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Report(t.Context(), access.OfOperator, made, common.Hash{4}); !errors.Is(err, intents.ErrTooManyAttempts) {
		t.Errorf("the 51st transaction: %v", err)
	}
	pgtest.Exec(t, s.store, fmt.Sprintf("UPDATE transfers SET status = 'confirmed', hash = '%s'", common.Hash{1}.Hex()))
	if _, err := s.Report(t.Context(), access.OfOperator, made, common.Hash{2}); !errors.Is(err, intents.ErrExecuted) {
		t.Errorf("after another transaction has executed the intent: %v", err)
	}
}
