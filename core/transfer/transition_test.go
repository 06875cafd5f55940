package transfer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"intents.internal/core/transfer"
)

var (
	allStatuses = []transfer.Status{
		transfer.Created, transfer.Submitted, transfer.Confirmed, transfer.Filled,
		transfer.Refunded, transfer.Failed, transfer.Expired, transfer.Cancelled,
	}
	allTriggers = []transfer.Trigger{
		transfer.Submit, transfer.Cancel, transfer.Expire, transfer.Drop, transfer.Confirm,
		transfer.Fail, transfer.Fill, transfer.Refund, transfer.Reorg, transfer.Refundable,
	}
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// command is a well-formed command of a trigger; Reorg leads to Submitted.
func command(trigger transfer.Trigger) transfer.Command {
	c := transfer.Command{Trigger: trigger}
	switch trigger {
	case transfer.Submit:
		c.Hash = "0xabc"
	case transfer.Confirm:
		c.Hash, c.Observed = "0xabc", &transfer.Transaction{}
	case transfer.Fail:
		c.Failure, c.Observed = transfer.TxReverted, &transfer.Transaction{}
	case transfer.Fill, transfer.Refund:
		c.Observed = &transfer.Transaction{}
	case transfer.Reorg:
		c.To, c.Hash = transfer.Submitted, "0xabc"
	default:
	}
	return c
}

// Each of the 8 × 10 squares of the state machine, for both kinds of intent.
func TestApply(t *testing.T) {
	t.Parallel()
	type square struct {
		from    transfer.Status
		trigger transfer.Trigger
	}
	allowed := map[square]transfer.Status{
		{transfer.Created, transfer.Submit}:       transfer.Submitted,
		{transfer.Submitted, transfer.Submit}:     transfer.Submitted,
		{transfer.Failed, transfer.Submit}:        transfer.Submitted,
		{transfer.Expired, transfer.Submit}:       transfer.Submitted,
		{transfer.Cancelled, transfer.Submit}:     transfer.Submitted,
		{transfer.Created, transfer.Cancel}:       transfer.Cancelled,
		{transfer.Created, transfer.Expire}:       transfer.Expired,
		{transfer.Submitted, transfer.Drop}:       transfer.Expired,
		{transfer.Submitted, transfer.Confirm}:    transfer.Confirmed,
		{transfer.Submitted, transfer.Fail}:       transfer.Failed,
		{transfer.Confirmed, transfer.Fill}:       transfer.Filled,
		{transfer.Confirmed, transfer.Refund}:     transfer.Refunded,
		{transfer.Confirmed, transfer.Reorg}:      transfer.Submitted,
		{transfer.Confirmed, transfer.Refundable}: transfer.Confirmed,
		{transfer.Filled, transfer.Reorg}:         transfer.Submitted,
		{transfer.Refunded, transfer.Reorg}:       transfer.Submitted,
		{transfer.Refunded, transfer.Fill}:        transfer.Filled,
		{transfer.Failed, transfer.Fill}:          transfer.Filled,
	}
	for _, kind := range []transfer.Type{transfer.Transfer, transfer.Swap, transfer.Bridge} {
		for _, from := range allStatuses {
			for _, trigger := range allTriggers {
				want, ok := allowed[square{from, trigger}]
				if kind == transfer.Transfer && (trigger == transfer.Fill || trigger == transfer.Refund || trigger == transfer.Refundable) {
					ok = false
				}
				intent := transfer.Intent{Type: kind, Status: from, Deadline: noon}
				before := intent
				event, err := intent.Apply(command(trigger), noon)
				if !ok {
					if !errors.Is(err, transfer.ErrTransition) || intent.Status != before.Status || !intent.UpdatedAt.IsZero() {
						t.Errorf("%s on a %s %s: %v, status %s", trigger, from, kind, err, intent.Status)
					}
					continue
				}
				if err != nil || intent.Status != want || event.From != from || event.To != want || !intent.UpdatedAt.Equal(noon) {
					t.Errorf("%s on a %s %s: %v, status %s, event %+v; want %s", trigger, from, kind, err, intent.Status, event, want)
				}
			}
		}
	}
}

func TestApply_Events(t *testing.T) {
	t.Parallel()
	intent := transfer.Intent{ID: uuid.New(), AccountID: uuid.New(), Type: transfer.Transfer, Status: transfer.Created, CreatedAt: noon}
	seen := &transfer.Transaction{Role: transfer.RoleSend, State: transfer.Mined}
	var events []transfer.Event
	for i, c := range []transfer.Command{
		{Trigger: transfer.Submit, Hash: "0x1"},
		{Trigger: transfer.Fail, Failure: transfer.TxReplaced, Observed: seen},
		{Trigger: transfer.Submit, Hash: "0x2"},
		{Trigger: transfer.Confirm, Hash: "0x3", Observed: seen},
	} {
		event, err := intent.Apply(c, noon.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	e := func(trigger transfer.Trigger, from, to transfer.Status, hash string, failure transfer.Failure, observed *transfer.Transaction, seconds int) transfer.Event {
		return transfer.Event{
			TransferID: intent.ID, AccountID: intent.AccountID, Trigger: trigger, From: from, To: to, Hash: hash, Failure: failure,
			Observed: observed, At: noon.Add(time.Duration(seconds) * time.Second),
		}
	}
	want := []transfer.Event{
		e(transfer.Submit, transfer.Created, transfer.Submitted, "0x1", "", nil, 0),
		e(transfer.Fail, transfer.Submitted, transfer.Failed, "0x1", transfer.TxReplaced, seen, 1),
		e(transfer.Submit, transfer.Failed, transfer.Submitted, "0x2", "", nil, 2),
		e(transfer.Confirm, transfer.Submitted, transfer.Confirmed, "0x3", "", seen, 3),
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if intent.Hash != "0x3" || intent.Failure != "" || !transfer.Final(intent.Type, intent.Status) {
		t.Errorf("intent %+v", intent)
	}
}

// A malformed command changes nothing.
func TestApply_MalformedCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []transfer.Command{
		{},
		{Trigger: "teleport"},
		{Trigger: transfer.Submit},
		{Trigger: transfer.Cancel, Hash: "0x1"},
		{Trigger: transfer.Fail},
		{Trigger: transfer.Confirm, Hash: "0x1", Failure: transfer.TxReverted, Observed: &transfer.Transaction{}},
		{Trigger: transfer.Confirm, Hash: "0x1"},
		{Trigger: transfer.Confirm, Observed: &transfer.Transaction{}},
		{Trigger: transfer.Fail, Failure: transfer.TxReverted},
		{Trigger: transfer.Fill},
		{Trigger: transfer.Refund},
		{Trigger: transfer.Fill, Hash: "0x1", Observed: &transfer.Transaction{}},
		{Trigger: transfer.Submit, Hash: "0x1", To: transfer.Submitted},
		{Trigger: transfer.Reorg},
		{Trigger: transfer.Reorg, To: transfer.Filled},
		{Trigger: transfer.Submit, Hash: "0x1", Failure: transfer.TxReverted},
	} {
		for _, status := range allStatuses {
			intent := transfer.Intent{Type: transfer.Swap, Status: status, Deadline: noon}
			before := intent
			event, err := intent.Apply(c, noon)
			if err == nil || errors.Is(err, transfer.ErrTransition) {
				t.Errorf("%+v on a %s intent: %v", c, status, err)
			}
			if diff := cmp.Diff([]any{before, transfer.Event{}}, []any{intent, event}); diff != "" {
				t.Errorf("%+v on a %s intent (-before +after):\n%s", c, status, diff)
			}
		}
	}
}

func TestApply_ExpireBeforeDeadline(t *testing.T) {
	t.Parallel()
	intent := transfer.Intent{Type: transfer.Transfer, Status: transfer.Created, Deadline: noon}
	if _, err := intent.Apply(command(transfer.Expire), noon.Add(-time.Second)); !errors.Is(err, transfer.ErrTransition) {
		t.Errorf("expired early: %v", err)
	}
}

// Only a reorganization changes an intent that is filled, or a fill one that is refunded, and only a transaction one that is cancelled.
func TestApply_FinalStatus(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]transfer.Type{transfer.Transfer, transfer.Swap, transfer.Bridge}).Draw(t, "type")
		intent := transfer.Intent{Type: kind, Status: transfer.Created, Deadline: noon}
		for _, trigger := range rapid.SliceOfN(rapid.SampledFrom(allTriggers), 1, 20).Draw(t, "triggers") {
			before := intent.Status
			_, err := intent.Apply(command(trigger), noon)
			allowed := trigger == transfer.Reorg
			switch before {
			case transfer.Refunded:
				allowed = allowed || trigger == transfer.Fill
			case transfer.Cancelled:
				allowed = trigger == transfer.Submit
			case transfer.Filled:
			default:
				allowed = true
			}
			if err == nil && !allowed {
				t.Fatalf("%s moved a %s intent to %s", trigger, before, intent.Status)
			}
		}
	})
}

// What the client did is remembered while the chain moves a cancelled intent.
func TestApply_CancelledAt(t *testing.T) {
	t.Parallel()
	intent := transfer.Intent{Type: transfer.Transfer, Status: transfer.Created}
	for n, c := range []transfer.Command{
		{Trigger: transfer.Cancel},
		{Trigger: transfer.Submit, Hash: "0x1"},
		{Trigger: transfer.Confirm, Hash: "0x1", Observed: &transfer.Transaction{}},
		{Trigger: transfer.Reorg, To: transfer.Cancelled},
	} {
		if _, err := intent.Apply(c, noon.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
		if n < 3 && !intent.CancelledAt.Equal(noon) {
			t.Errorf("after %s cancelled at %s", c.Trigger, intent.CancelledAt)
		}
	}
	if intent.Hash != "" || intent.Status != transfer.Cancelled {
		t.Errorf("after all %+v", intent)
	}
}
