package api

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
)

func FuzzCursor(f *testing.F) {
	f.Add("AaH8bJrndrWZJ7M5xdso_AAGYMIIPRZY")
	f.Add("AaH8bJrndrWZJ7M5xdso_A")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		position, err := parseCursor(text)
		if err != nil {
			return
		}
		byTime := !position.UpdatedAt.IsZero()
		again := formatCursor(intents.KeysetCursor{ID: position.ID, UpdatedAt: position.UpdatedAt}, byTime)
		if again != text {
			t.Fatalf("cursor %q is written %q", text, again)
		}
	})
}

func TestCursor_RoundTrip(t *testing.T) {
	t.Parallel()
	want := intents.KeysetCursor{ID: uuid.Must(uuid.NewV7()), UpdatedAt: time.Date(2026, 11, 21, 1, 2, 3, 4000, time.UTC)}
	got, err := parseCursor(formatCursor(want, true))
	if err != nil || got.ID != want.ID || !got.UpdatedAt.Equal(want.UpdatedAt) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if got, err := parseCursor(formatCursor(want, false)); err != nil || got.ID != want.ID || !got.UpdatedAt.IsZero() {
		t.Errorf("of a list ordered by id: %+v, %v; want %v and no time", got, err, want.ID)
	}
}
