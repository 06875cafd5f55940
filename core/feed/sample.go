package feed

import (
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// sampleSteps are the statuses of a sample of each type of an intent's event.
var sampleSteps = map[Type]struct{ from, to transfer.Status }{
	TypeTransferCreated:     {"", transfer.Created},
	TypeTransferSubmitted:   {transfer.Created, transfer.Submitted},
	TypeTransferConfirmed:   {transfer.Submitted, transfer.Confirmed},
	TypeTransferFilled:      {transfer.Confirmed, transfer.Filled},
	TypeTransferRefunded:    {transfer.Confirmed, transfer.Refunded},
	TypeTransferFailed:      {transfer.Submitted, transfer.Failed},
	TypeTransferExpired:     {transfer.Created, transfer.Expired},
	TypeTransferCancelled:   {transfer.Created, transfer.Cancelled},
	TypeTransferReorganized: {transfer.Confirmed, transfer.Submitted},
	TypeTransferRefundable:  {transfer.Confirmed, transfer.Confirmed},
	TypeTransferUpdated:     {transfer.Created, transfer.Created},
}

// sampleRoutes are the sides of the bridge that samples tell of: USDC from a chain to another of the environment.
var sampleRoutes = map[network.Environment][2]transfer.SummaryLeg{
	network.Test: {
		sampleLeg(11155111, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", "1000000"),
		sampleLeg(84532, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "995000"),
	},
	network.Live: {
		sampleLeg(1, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "1000000"),
		sampleLeg(8453, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "995000"),
	},
}

func sampleLeg(chain uint64, account, token, amount string) transfer.SummaryLeg {
	return transfer.SummaryLeg{Chain: caip.EIP155Chain(chain), Account: account, Token: token, Amount: amount}
}

// The ids of the intent and the transaction that samples tell of, which no account has.
var (
	sampleIntent = uuid.MustParse("01a1fc6f-cea0-7b16-87fe-c7933bb8a48e")
	sampleHash   = common.HexToHash("0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
)

// Sample returns an event of a type such as the reference shows, for tests of receivers: nothing has happened, so it is simulated. It is the same for
// the same arguments. ok is false for a type that is not an intent's.
func Sample(kind Type, id ID, environment network.Environment, at time.Time) (e Event, ok bool) {
	step, ok := sampleSteps[kind]
	if !ok {
		return Event{}, false
	}
	route := sampleRoutes[environment]
	t := &Transition{
		From: step.from, To: step.to, Simulated: true,
		Summary: transfer.Summary{
			ID: sampleIntent, Environment: environment, Type: transfer.Bridge, Status: step.to, OrderID: [32]byte{1}, Source: route[0], Destination: route[1],
			Deadline: at.Add(time.Hour).Truncate(time.Second), Reference: "inv-43", Labels: wire.NewLabels(map[string]string{"order": "43"}),
			CreatedAt: at, UpdatedAt: at,
		},
	}
	if step.to == transfer.Submitted || step.from != "" && step.from != transfer.Created {
		t.Summary.Hash = sampleHash.Hex()
	}
	if step.to == transfer.Failed {
		t.Failure = transfer.TxReverted
		t.FailureReason = t.Summary.Explain(t.Failure, &transfer.Transaction{Chain: route[0].Chain, Hash: sampleHash, Block: &transfer.Block{Number: 7}})
	}
	return Event{ID: id, Type: kind, Environment: environment, At: at, Sequence: slices.Index(types, kind) + 1, Transfer: t}, true
}
