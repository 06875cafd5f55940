package transfer_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/transfer"
)

func TestNewID(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	first := transfer.NewID(at)
	if first.Version() != 7 || first.Variant() != uuid.RFC4122 {
		t.Errorf("version %d, variant %s", first.Version(), first.Variant())
	}
	if seconds, nanoseconds := first.Time().UnixTime(); !time.Unix(seconds, nanoseconds).Equal(at) {
		t.Errorf("the time is %s, not %s", time.Unix(seconds, nanoseconds).UTC(), at)
	}
	if first == transfer.NewID(at) {
		t.Error("two ids of one time are the same")
	}
	before := first
	for _, later := range []time.Duration{time.Microsecond, 999 * time.Microsecond, time.Millisecond, time.Second, 1000 * time.Hour} {
		id := transfer.NewID(at.Add(later))
		if bytes.Compare(before[:], id[:]) >= 0 {
			t.Errorf("the id of %s later sorts before that of a time before", later)
		}
		before = id
	}
}
