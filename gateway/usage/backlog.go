package usage

import (
	"slices"
	"time"

	"intents.internal/pkg/wire"
)

// tally is what was counted of one key in one minute.
type tally struct {
	counts [kinds]int64
	// latest is in milliseconds since 1970.
	latest int64
}

func (t tally) empty() bool { return t.counts == [kinds]int64{} }

func (t tally) plus(other tally) tally {
	for kind := range t.counts {
		t.counts[kind] += other.counts[kind]
	}
	t.latest = max(t.latest, other.latest)
	return t
}

// backlog is what waits to be reported: a row for each key and minute. It is not safe for concurrent use.
type backlog struct {
	// minutes are in their order, none empty.
	minutes []minute
	rows    int
}

type minute struct {
	at   time.Time
	keys map[string]tally
}

// add merges what was counted into the key's row of the minute.
func (b *backlog) add(at time.Time, keyID string, t tally) {
	i, found := slices.BinarySearchFunc(b.minutes, at, func(m minute, at time.Time) int { return m.at.Compare(at) })
	if !found { // nearly always the last, unless the clock was put back
		b.minutes = slices.Insert(b.minutes, i, minute{at: at, keys: map[string]tally{}})
	}
	keys := b.minutes[i].keys
	before, known := keys[keyID]
	if !known {
		b.rows++
	}
	keys[keyID] = before.plus(t)
}

// takeOldest removes up to n rows, oldest minutes first.
func (b *backlog) takeOldest(n int) []wire.KeyUsage {
	taken := make([]wire.KeyUsage, 0, min(n, b.rows))
	for len(taken) < cap(taken) {
		oldest := b.minutes[0]
		for keyID, t := range oldest.keys {
			if len(taken) == cap(taken) {
				break
			}
			delete(oldest.keys, keyID)
			taken = append(taken, wire.KeyUsage{
				KeyID: keyID, Minute: oldest.at,
				Accepted: t.counts[Accepted], Limited: t.counts[Limited], Refused: t.counts[Refused],
				LastUsedAt: time.UnixMilli(t.latest).UTC(),
			})
		}
		if len(oldest.keys) == 0 {
			b.minutes = slices.Delete(b.minutes, 0, 1)
		}
	}
	b.rows -= len(taken)
	return taken
}
