package control_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"intents.internal/gateway/control"
	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// A poll that one core does not answer is answered by the next at once, in the time that its caller has.
func TestClient_PollNextCore(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	failing, works := core.Front(t), core.Front(t)
	failing.Hangs.Store(true)
	cores := coretest.Unprobed(t, coretest.Options(failing.URL, works.URL))
	cores.Cores().All()[1].Begin() // so that the other is asked first
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	const wait = 250 * time.Millisecond
	if _, err := control.New(cores).KeyChanges(ctx, "0", wait); err != nil {
		t.Error(err)
	}
	if failing.Asked.Load() != 1 || works.Asked.Load() != 1 || core.FeedWait.Load() != 0 {
		t.Errorf("asked %d and %d times, the second to wait %s", failing.Asked.Load(), works.Asked.Load(), time.Duration(core.FeedWait.Load()))
	}
}

// A refusal by the only core is the result, and its status is told.
func TestClient_OnlyCore(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	core.FeedDown.Store(true)
	core.VerifyDown.Store(true)
	only := core.Front(t)
	client := control.New(coretest.Unprobed(t, coretest.Options(only.URL)))
	_, err := client.KeyChanges(t.Context(), "1", time.Millisecond)
	if err == nil || err.Error() != "get key changes: core answered 503 SERVICE_UNAVAILABLE" {
		t.Errorf("error: %v", err)
	}
	if _, err := client.VerifyKey(t.Context(), apikey.Hash{}); err == nil || errors.Is(err, control.ErrUnknownKey) {
		t.Errorf("error: %v", err)
	}
	if only.Asked.Load() != 2 {
		t.Errorf("core was asked %d times, want 2", only.Asked.Load())
	}
}

// What core answers is an answer: it is not asked for elsewhere.
func TestClient_RefusalNotRetried(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	one, other := core.Front(t), core.Front(t)
	client := control.New(coretest.Unprobed(t, coretest.Options(one.URL, other.URL)))
	if _, err := client.VerifyKey(t.Context(), apikey.New(network.Test).Hash()); !errors.Is(err, control.ErrUnknownKey) {
		t.Errorf("error: %v", err)
	}
	core.ExpireCursors()
	if _, err := client.KeyChanges(t.Context(), "0", 0); !errors.Is(err, control.ErrCursorExpired) {
		t.Errorf("error: %v", err)
	}
	if got := one.Asked.Load() + other.Asked.Load(); got != 2 {
		t.Errorf("2 questions were asked %d times", got)
	}
}
