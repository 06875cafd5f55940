package transfer_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/caip"
)

// benchIntent is an intent that sends an ERC-20 token.
func benchIntent(kind transfer.Type) *transfer.Intent {
	sepolia, base := caip.EIP155Chain(11155111), caip.EIP155Chain(84532)
	now := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	return &transfer.Intent{
		ID: uuid.MustParse("0199a1b2-c3d4-7e5f-8a6b-0c1d2e3f4a69"), Type: kind, Status: transfer.Created,
		Source:      leg(sepolia, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", "1000000"),
		Destination: leg(base, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "990000"),
		Settlement: transfer.Settlement{
			Scheme: chain.OrderDataScheme, OriginDomain: 11155111, DestinationDomain: 84532,
			OriginSettler: "0x5FbDB2315678afecb367f032d93F642f64180aa3", DestinationSettler: "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512",
		},
		Deadline: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
	}
}

func BenchmarkIntent_Order(b *testing.B) {
	intent := benchIntent(transfer.Bridge)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := intent.Order(); err != nil {
			b.Fatal(err)
		}
	}
}

// The id is the Keccak-256 of the order.
func BenchmarkOrder_ID(b *testing.B) {
	order, err := benchIntent(transfer.Bridge).Order()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		order.ID()
	}
}

func BenchmarkIntent_Tx(b *testing.B) {
	for _, kind := range []transfer.Type{transfer.Transfer, transfer.Bridge} {
		b.Run(string(kind), func(b *testing.B) {
			intent := benchIntent(kind)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := intent.Tx(intent.CreatedAt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
