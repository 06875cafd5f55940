package transfer_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intent/token"
	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/caip"
)

// vector is one row of testdata/order_vectors.json, on which go-ethereum, viem, ethers and a compiled settler agree.
type vector struct {
	Name        string
	SenderNonce string
	OrderData   string
	OrderID     string
	To          string
	Value       string
	Data        string
	Approve     string
	Input       struct {
		Type                                       transfer.Type
		ID                                         uuid.UUID
		Sender, Recipient, InputToken, OutputToken string
		AmountIn, AmountOut                        string
		OriginDomain, DestinationDomain            uint32
		OriginSettler, DestinationSettler          string
		FillDeadline                               int64
	}
}

func TestOrderVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/order_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		TypeHash string
		Vectors  []vector
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 4 {
		t.Fatalf("only %d vectors", len(file.Vectors))
	}
	if got := transfer.OrderDataType.Hex(); got != file.TypeHash {
		t.Errorf("type hash = %s, want %s", got, file.TypeHash)
	}
	for _, v := range file.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			intent := v.intent()
			order, err := intent.Order()
			if err != nil {
				t.Fatal(err)
			}
			tx, err := intent.Tx(intent.CreatedAt)
			if err != nil {
				t.Fatal(err)
			}
			id := order.ID()
			got := vector{
				Name: v.Name, Input: v.Input,
				SenderNonce: order.SenderNonce.String(), OrderData: hexed(order.Encoded), OrderID: hexed(id[:]),
				To: tx.To, Value: tx.Value.String(), Data: hexed(tx.Data),
			}
			if len(tx.Allowances) == 1 {
				got.Approve = hexed(tx.Allowances[0].Approve.Data)
			}
			if diff := cmp.Diff(v, got); diff != "" {
				t.Errorf("vector differs (-want +got):\n%s", diff)
			}
		})
	}
}

// The encoding is that of go-ethereum for any order.
func TestOrder_Encoding(t *testing.T) {
	t.Parallel()
	source := rand.NewChaCha8([32]byte{1})
	some := func(n int) []byte {
		b := make([]byte, n)
		_, _ = source.Read(b) // it never fails
		return b
	}
	number := func() uint32 { return binary.BigEndian.Uint32(some(4)) }
	for n := range 200 {
		order := transfer.Order{
			Sender: [32]byte(some(32)), Recipient: [32]byte(some(32)), InputToken: [32]byte(some(32)), OutputToken: [32]byte(some(32)),
			AmountIn: new(big.Int).SetBytes(some(n % 33)), AmountOut: new(big.Int).SetBytes(some(32)), SenderNonce: new(big.Int).SetBytes(some(16)),
			OriginDomain: number(), DestinationDomain: number(), DestinationSettler: [32]byte(some(32)), FillDeadline: number(), Data: some(n),
		}
		want, err := abiOrder.Pack(order)
		if err != nil {
			t.Fatal(err)
		}
		if err := order.Encode(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, order.Encoded); diff != "" {
			t.Errorf("%d bytes of data: %s", n, diff)
		}
	}
	for _, amount := range []*big.Int{big.NewInt(-1), new(big.Int).Lsh(big.NewInt(1), 256)} {
		if (&transfer.Order{AmountIn: amount, AmountOut: amount, SenderNonce: amount}).Encode() == nil {
			t.Errorf("%s is encoded", amount)
		}
	}
}

func hexed(b []byte) string { return "0x" + hex.EncodeToString(b) }

func (v vector) intent() *transfer.Intent {
	origin := caip.EIP155Chain(uint64(v.Input.OriginDomain))
	destination := caip.EIP155Chain(uint64(v.Input.DestinationDomain))
	route := transfer.Settlement{OriginDomain: v.Input.OriginDomain, DestinationDomain: v.Input.DestinationDomain}
	if v.Input.Type != transfer.Transfer {
		route.OriginSettler, route.DestinationSettler = v.Input.OriginSettler, v.Input.DestinationSettler
	}
	return &transfer.Intent{
		ID: v.Input.ID, Type: v.Input.Type, Status: transfer.Created, Settlement: route,
		Source:      leg(origin, v.Input.Sender, v.Input.InputToken, v.Input.AmountIn),
		Destination: leg(destination, v.Input.Recipient, v.Input.OutputToken, v.Input.AmountOut),
		Deadline:    time.Unix(v.Input.FillDeadline, 0),
	}
}

func leg(chain caip.ChainID, account, tokenAddress, amount string) transfer.Leg {
	if tokenAddress == "0x0000000000000000000000000000000000000000" {
		tokenAddress = token.NativeAddress
	}
	units, _ := new(big.Int).SetString(amount, 10)
	return transfer.Leg{
		Account: caip.AccountID{Chain: chain, Address: account},
		Token:   caip.AccountID{Chain: chain, Address: tokenAddress},
		Amount:  units,
	}
}
