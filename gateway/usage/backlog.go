package usage

import (
	"slices"
	"time"

	"intents.internal/pkg/wire"
)

// counts are one key's requests in one minute.
type counts struct {
	byKind [kinds]int64
	// latest is in milliseconds since 1970.
	latest int64
}

func (c counts) isZero() bool { return c.byKind == [kinds]int64{} }

func (c counts) add(other counts) counts {
	for kind := range c.byKind {
		c.byKind[kind] += other.byKind[kind]
	}
	c.latest = max(c.latest, other.latest)
	return c
}

// backlog holds the rows that wait to be reported, one for each key and minute. It is not safe for concurrent use.
type backlog struct {
	// minutes are in order, none empty.
	minutes []minute
	rows    int
}

type minute struct {
	at   time.Time
	keys map[string]counts
}

// add adds the counts to the key's row of the minute.
func (b *backlog) add(at time.Time, keyID string, c counts) {
	i, found := slices.BinarySearchFunc(b.minutes, at, func(m minute, at time.Time) int { return m.at.Compare(at) })
	if !found { // a new minute is the last, unless the clock was set back
		b.minutes = slices.Insert(b.minutes, i, minute{at: at, keys: map[string]counts{}})
	}
	keys := b.minutes[i].keys
	before, known := keys[keyID]
	if !known {
		b.rows++
	}
	keys[keyID] = before.add(c)
}

// rowsBefore is the number of rows of earlier minutes.
func (b *backlog) rowsBefore(at time.Time) (rows int) {
	for _, m := range b.minutes {
		if m.at.Before(at) {
			rows += len(m.keys)
		}
	}
	return rows
}

// takeOldest removes up to n rows, oldest minutes first.
func (b *backlog) takeOldest(n int) []wire.KeyUsage {
	taken := make([]wire.KeyUsage, 0, min(n, b.rows))
	for len(taken) < cap(taken) {
		oldest := b.minutes[0]
		for keyID, c := range oldest.keys {
			if len(taken) == cap(taken) {
				break
			}
			delete(oldest.keys, keyID)
			taken = append(taken, wire.KeyUsage{
				KeyID: keyID, Minute: oldest.at,
				Accepted: c.byKind[Accepted], Limited: c.byKind[Limited], Refused: c.byKind[Refused],
				LastUsedAt: time.UnixMilli(c.latest).UTC(),
			})
		}
		if len(oldest.keys) == 0 {
			b.minutes = slices.Delete(b.minutes, 0, 1)
		}
	}
	b.rows -= len(taken)
	return taken
}
