package webhooks

import (
	"slices"
	"testing"

	"github.com/google/uuid"
)

func ids(n int) (ids []uuid.UUID) {
	for range n {
		ids = append(ids, uuid.New())
	}
	return ids
}

// However many accounts have a backlog, an account with news has its turn in the next round; the others take turns.
func TestAccountQueue(t *testing.T) {
	t.Parallel()
	q := newAccountQueue()
	replaying, newer := ids(3*roundBacklog), ids(2)
	q.add(replaying)
	round := func(wantMore bool, want ...uuid.UUID) {
		t.Helper()
		if got, more := q.take(); !slices.Equal(got, want) || more != wantMore {
			t.Errorf("the round has %v, more: %t\nwant %v", got, more, want)
		}
	}
	round(false, replaying...)
	q.addBacklog(replaying)
	round(true, replaying[:roundBacklog]...)
	q.add(append(replaying[:roundBacklog:roundBacklog], newer...)) // news during the round
	q.add(newer)
	q.addBacklog(replaying[:roundBacklog]) // which had more than their share
	round(true, append(newer, replaying[roundBacklog:2*roundBacklog]...)...)
	round(true, replaying[2*roundBacklog:]...)
	q.add(replaying[:1]) // waits already
	round(false, replaying[:roundBacklog]...)
	q.add(ids(roundFresh + 1))
	if got, more := q.take(); len(got) != roundFresh || !more {
		t.Errorf("a round of %d accounts", len(got))
	}
	q.clear()
	round(false)
	q.add(newer)
	round(false, newer...)
}
