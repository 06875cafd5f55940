package transfer_test

import (
	"testing"
	"time"

	"intents.internal/core/transfer"
)

// New encodes and identifies the order.
func BenchmarkNew(b *testing.B) {
	known := fixture()
	request := newRequest(transfer.Bridge, usdc)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transfer.New(id, transfer.Caller{}, request, known); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIntent_Order(b *testing.B) {
	intent := newIntent(transfer.Bridge)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := intent.Order(); err != nil {
			b.Fatal(err)
		}
	}
}

// The id is the Keccak-256 of the packed encoding.
func BenchmarkOrder_ID(b *testing.B) {
	order, err := newIntent(transfer.Bridge).Order()
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
			intent := newIntent(kind)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := intent.Tx(transfer.Moment{Now: intent.CreatedAt, BlockTime: time.Second}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A fill is compared with the intent's output.
func BenchmarkIntent_MatchLog(b *testing.B) {
	intent := newIntent(transfer.Bridge)
	log := fillLog(intent)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := intent.MatchLog(baseSepolia, log); !ok {
			b.Fatal("no match")
		}
	}
}
