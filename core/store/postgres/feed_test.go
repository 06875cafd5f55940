package postgres_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/events/event"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/network"
)

// testFeed is an account's feed of test events.
func testFeed(accountID uuid.UUID) event.Owner {
	return event.Owner{AccountID: accountID, Environment: network.Test}
}

// assignPositions runs rounds until no event waits.
func assignPositions(tb testing.TB, store *postgres.Store) {
	tb.Helper()
	for more := true; more; {
		round, err := store.AssignPositions(tb.Context(), true, false)
		if err != nil || round.Skipped {
			tb.Fatalf("%+v, %v", round, err)
		}
		more = round.More
	}
}

// readFeed reads an owner's whole feed from a position.
func readFeed(tb testing.TB, store *postgres.Store, owner event.Owner, after int64) (events []event.Event, next int64) {
	tb.Helper()
	for {
		page, err := store.EventPage(tb.Context(), owner, after, event.Filter{}, 1000)
		if err != nil {
			tb.Fatal(err)
		}
		events, after = append(events, page.Events...), page.Next
		if page.End {
			return events, after
		}
	}
}

// steps are the events in short.
func steps(events []event.Event) (short []string) {
	for _, e := range events {
		short = append(short, fmt.Sprintf("%s %d", e.Type, e.Sequence))
	}
	return short
}

func cancelTransfer(tb testing.TB, store *postgres.Store, intent *transfer.Intent) {
	tb.Helper()
	if _, err := store.Transition(tb.Context(), intent.AccountID, intent.ID, transfer.Command{Trigger: transfer.Cancel}); err != nil {
		tb.Fatal(err)
	}
}
