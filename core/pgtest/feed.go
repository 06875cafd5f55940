package pgtest

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// TestFeed is an account's feed of test events.
func TestFeed(accountID uuid.UUID) feed.Owner {
	return feed.Owner{AccountID: accountID, Environment: network.Test}
}

// AssignPositions runs rounds until no event waits.
func AssignPositions(tb testing.TB, store *rooms.Rooms) {
	tb.Helper()
	for more := true; more; {
		round, err := store.Feed.AssignPositions(tb.Context(), true, false)
		if err != nil || round.Skipped {
			tb.Fatalf("%+v, %v", round, err)
		}
		more = round.More
	}
}

// ReadFeed reads an owner's whole feed from a position.
func ReadFeed(tb testing.TB, store *rooms.Rooms, owner feed.Owner, after int64) (events []feed.Event, next int64) {
	tb.Helper()
	for {
		page, err := store.Feed.EventPage(tb.Context(), owner, after, feed.Filter{}, 1000)
		if err != nil {
			tb.Fatal(err)
		}
		events, after = append(events, page.Events...), page.Next
		if page.End {
			return events, after
		}
	}
}

// Steps are the events in short.
func Steps(events []feed.Event) (short []string) {
	for _, e := range events {
		short = append(short, fmt.Sprintf("%s %d", e.Type, e.Sequence))
	}
	return short
}

// CancelTransfer cancels an intent.
func CancelTransfer(tb testing.TB, store *rooms.Rooms, intent *transfer.Intent) {
	tb.Helper()
	if _, err := store.Intents.Transition(tb.Context(), intent.AccountID, intent.ID, transfer.Command{Trigger: transfer.Cancel}); err != nil {
		tb.Fatal(err)
	}
}
