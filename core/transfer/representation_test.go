package transfer_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"intents.internal/core/transfer"
	"intents.internal/core/transfer/transfertest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// same compares what is appended after other bytes with encoding/json's form of a value.
func same(t rapid.TB, value any, appended func([]byte) []byte) {
	t.Helper()
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("before"+string(want), string(appended([]byte("before")))); diff != "" {
		t.Fatalf("(-encoding/json +appended):\n%s", diff)
	}
}

func FuzzAppendText(f *testing.F) {
	for _, text := range []string{
		"", "order 4711", "<script>&\"\\/", "\x00\b\f\n\r\t\x1f\x7f", "\u2028\u2029", "é😀\ufffd", "\xff", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		same(t, text, func(b []byte) []byte { return transfer.AppendText(b, text) })
		same(t, transfertest.Optional(text), func(b []byte) []byte { return transfer.AppendOptional(b, text) })
	})
}

func TestAppendTimestamp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := transfertest.Time().Draw(t, "time")
		same(t, transfertest.Timestamp(at), func(b []byte) []byte { return transfer.AppendTimestamp(b, at) })
		same(t, transfertest.Timestamp(at), func(b []byte) []byte { return append(append(append(b, '"'), transfer.NewTimestamp(at)...), '"') })
	})
}

func TestAppendSummary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		summary := transfertest.Intent().Draw(t, "intent").Summary()
		same(t, transfertest.NewSummary(summary), func(b []byte) []byte { return transfer.AppendSummary(b, &summary) })
	})
}

func TestAppendTx(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		intent := transfertest.Intent().Draw(t, "intent")
		tx, err := intent.Tx(transfer.Moment{Now: intent.Deadline.Add(-time.Hour), BlockTime: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		want := transfertest.NewTx(tx)
		same(t, want, func(b []byte) []byte { return transfer.AppendTx(b, tx) })
		if tx != nil {
			same(t, want.Calls, func(b []byte) []byte { return transfer.AppendSendCalls(b, tx.Chain, tx.From, tx.Calls()) })
		}
	})
}

func BenchmarkAppendSummary(b *testing.B) {
	at := time.Date(2026, 11, 22, 1, 2, 3, 456e6, time.UTC)
	summary := transfer.Summary{
		ID: uuid.MustParse("0199a1b2-c3d4-7e5f-8a6b-0c1d2e3f4a69"), Type: transfer.Bridge, Status: transfer.Created,
		Source: transfer.SummaryLeg{
			Chain: caip.EIP155Chain(11155111), Account: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
			Token: "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", Amount: "1000000",
		},
		Destination: transfer.SummaryLeg{
			Chain: caip.EIP155Chain(84532), Account: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
			Token: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", Amount: "990000",
		},
		Environment: network.Test, Deadline: at.Add(time.Hour).Truncate(time.Second), Reference: "order 4711",
		CreatedAt: at, UpdatedAt: at.Add(time.Minute),
	}
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		buffer = transfer.AppendSummary(buffer[:0], &summary)
	}
}

// Amounts have up to 256 bits.
func TestAppendDecimal(t *testing.T) {
	t.Parallel()
	for _, bits := range []uint{0, 1, 63, 64, 65, 128, 256} {
		power := new(big.Int).Lsh(big.NewInt(1), bits)
		for _, n := range []*big.Int{power, new(big.Int).Sub(power, big.NewInt(1))} {
			if got, want := string(transfer.AppendDecimal([]byte("a"), n)), `a"`+n.String()+`"`; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}
