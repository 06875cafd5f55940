package transfer_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// The ways through the state machine from each status, as the events of each step would tell them.
func TestSimulate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind     transfer.Type
		from, to transfer.Status
		want     []transfer.Status
		refused  bool
	}{
		"sent":                        {transfer.Transfer, transfer.Created, transfer.Submitted, []transfer.Status{transfer.Submitted}, false},
		"paid":                        {transfer.Transfer, transfer.Created, transfer.Confirmed, []transfer.Status{transfer.Submitted, transfer.Confirmed}, false},
		"failed":                      {transfer.Transfer, transfer.Created, transfer.Failed, []transfer.Status{transfer.Submitted, transfer.Failed}, false},
		"expired before its deadline": {transfer.Transfer, transfer.Created, transfer.Expired, []transfer.Status{transfer.Expired}, false},
		"dropped":                     {transfer.Transfer, transfer.Submitted, transfer.Expired, []transfer.Status{transfer.Expired}, false},
		"a transfer has no solver":    {transfer.Transfer, transfer.Created, transfer.Filled, nil, true},
		"filled": {
			transfer.Swap, transfer.Created, transfer.Filled, []transfer.Status{transfer.Submitted, transfer.Confirmed, transfer.Filled}, false,
		},
		"refunded": {
			transfer.Bridge, transfer.Created, transfer.Refunded, []transfer.Status{transfer.Submitted, transfer.Confirmed, transfer.Refunded}, false,
		},
		"the next step":          {transfer.Bridge, transfer.Confirmed, transfer.Filled, []transfer.Status{transfer.Filled}, false},
		"filled after a refund":  {transfer.Bridge, transfer.Refunded, transfer.Filled, []transfer.Status{transfer.Filled}, false},
		"another attempt":        {transfer.Transfer, transfer.Failed, transfer.Confirmed, []transfer.Status{transfer.Submitted, transfer.Confirmed}, false},
		"sent after its end":     {transfer.Transfer, transfer.Cancelled, transfer.Submitted, []transfer.Status{transfer.Submitted}, false},
		"the status that it has": {transfer.Transfer, transfer.Confirmed, transfer.Confirmed, nil, false},
		"back":                   {transfer.Transfer, transfer.Confirmed, transfer.Submitted, nil, true},
		"back to the start":      {transfer.Transfer, transfer.Submitted, transfer.Created, nil, true},
		"cancelled":              {transfer.Transfer, transfer.Created, transfer.Cancelled, nil, true},
		"from the end":           {transfer.Swap, transfer.Filled, transfer.Refunded, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := &transfer.Intent{Environment: network.Test, Type: c.kind, Status: c.from, Deadline: noon.AddDate(0, 0, 1)}
			commands, err := intent.Simulate(c.to, 0)
			if errors.Is(err, transfer.ErrTransition) != c.refused || !c.refused && err != nil {
				t.Fatalf("simulate: %v", err)
			}
			var got []transfer.Status
			for _, command := range commands {
				event, err := intent.Apply(command, noon)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, event.To); !event.Simulated || event.Hash != "" || event.Observed != nil || !intent.Simulated {
					t.Errorf("event %+v of %+v", event, intent)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSimulate_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change       func(*transfer.Intent)
		transactions int
		want         error
	}{
		"a live chain":  {change: func(i *transfer.Intent) { i.Environment = network.Live }, want: transfer.ErrNotTest},
		"a transaction": {change: func(*transfer.Intent) {}, transactions: 1, want: transfer.ErrSent},
		"a hash":        {change: func(i *transfer.Intent) { i.Hash = "0x1" }, want: transfer.ErrSent},
		"a signature":   {change: func(i *transfer.Intent) { i.Signing.SignedAt = noon }, want: transfer.ErrSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := &transfer.Intent{Environment: network.Test, Type: transfer.Transfer, Status: transfer.Created}
			c.change(intent)
			if _, err := intent.Simulate(transfer.Confirmed, c.transactions); !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
			if statuses := intent.Simulatable(c.transactions); statuses != nil {
				t.Errorf("it can be taken to %v", statuses)
			}
		})
	}
}

func TestSimulatable(t *testing.T) {
	t.Parallel()
	intent := &transfer.Intent{Environment: network.Test, Type: transfer.Transfer, Status: transfer.Created}
	want := []transfer.Status{transfer.Submitted, transfer.Confirmed, transfer.Failed, transfer.Expired}
	if diff := cmp.Diff(want, intent.Simulatable(0)); diff != "" {
		t.Errorf("a transfer (-want +got):\n%s", diff)
	}
	intent.Type, intent.Status = transfer.Swap, transfer.Confirmed
	if diff := cmp.Diff([]transfer.Status{transfer.Filled, transfer.Refunded}, intent.Simulatable(0)); diff != "" {
		t.Errorf("an open order (-want +got):\n%s", diff)
	}
	want = []transfer.Status{transfer.Submitted, transfer.Confirmed, transfer.Filled, transfer.Refunded, transfer.Failed, transfer.Expired}
	if diff := cmp.Diff(want, transfer.SimulatedStatuses); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
}

// Nothing but a simulation and what a client calls it changes an intent that was simulated.
func TestApply_Simulated(t *testing.T) {
	t.Parallel()
	for _, from := range allStatuses {
		for _, trigger := range allTriggers {
			intent := transfer.Intent{Type: transfer.Swap, Status: from, Simulated: true}
			if _, err := intent.Apply(command(trigger), noon); !errors.Is(err, transfer.ErrTransition) {
				t.Errorf("%s while %s: %v", trigger, from, err)
			}
		}
		intent := &transfer.Intent{Type: transfer.Swap, Status: from, Simulated: true}
		if commands, err := intent.Evaluate([]transfer.Transaction{{Role: transfer.RoleOpen, State: transfer.Mined, Confirmed: true}}, noon); commands != nil || err != nil {
			t.Errorf("a transaction while %s: %v, %v", from, commands, err)
		}
		if err := intent.Sendable(transfer.Moment{Now: noon}); !errors.Is(err, transfer.ErrSimulated) || !errors.Is(err, transfer.ErrNotSendable) {
			t.Errorf("sendable while %s: %v", from, err)
		}
	}
	for _, malformed := range []transfer.Command{
		{Trigger: transfer.Submit, Hash: "0xabc", Simulated: true},
		{Trigger: transfer.Confirm, Observed: &transfer.Transaction{}, Simulated: true},
		{Trigger: transfer.Cancel, Simulated: true},
		{Trigger: transfer.Fail, Simulated: true},
	} {
		intent := transfer.Intent{Type: transfer.Swap, Status: transfer.Created}
		if _, err := intent.Apply(malformed, noon); err == nil || errors.Is(err, transfer.ErrTransition) {
			t.Errorf("%+v: %v", malformed, err)
		}
	}
}
