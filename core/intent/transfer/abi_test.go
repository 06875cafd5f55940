package transfer_test

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intent/token"
	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/caip"
)

// The encoders of go-ethereum, which read the fields from the type strings.
var (
	abiOrder = arguments(tuple("tuple", transfer.EIP712Type))
	abiOpen  = arguments(tuple("tuple", onchainOrderType))
	// abiRefund has an array of orders.
	abiRefund = arguments(tuple("tuple[]", onchainOrderType))
	abiToken  = arguments(abi.ArgumentMarshaling{Type: "address"}, abi.ArgumentMarshaling{Type: "uint256"})
)

const onchainOrderType = "OnchainCrossChainOrder(uint32 fillDeadline,bytes32 orderDataType,bytes orderData)"

// onchainOrder is ERC-7683's OnchainCrossChainOrder.
type onchainOrder struct {
	FillDeadline  uint32
	OrderDataType [32]byte
	OrderData     []byte
}

// tuple reads the fields of an EIP-712 type string.
func tuple(kind, typeString string) abi.ArgumentMarshaling {
	_, list, _ := strings.Cut(strings.TrimSuffix(typeString, ")"), "(")
	argument := abi.ArgumentMarshaling{Name: "order", Type: kind}
	for field := range strings.SplitSeq(list, ",") {
		kind, name, _ := strings.Cut(field, " ")
		argument.Components = append(argument.Components, abi.ArgumentMarshaling{Name: name, Type: kind})
	}
	return argument
}

func arguments(list ...abi.ArgumentMarshaling) (out abi.Arguments) {
	for _, a := range list {
		kind, err := abi.NewType(a.Type, "", a.Components)
		if err != nil {
			panic(fmt.Sprintf("ABI type %s: %v", a.Type, err))
		}
		out = append(out, abi.Argument{Name: a.Name, Type: kind})
	}
	return out
}

// calldata is the call of a function as go-ethereum encodes it.
func calldata(t *testing.T, signature string, inputs abi.Arguments, values ...any) string {
	t.Helper()
	packed, err := inputs.Pack(values...)
	if err != nil {
		t.Fatal(err)
	}
	return hexed(append(crypto.Keccak256([]byte(signature))[:4], packed...))
}

// FuzzIntent_Calldata compares the order and the calldata of any intent with go-ethereum's encoding of them.
func FuzzIntent_Calldata(f *testing.F) {
	high := make([]byte, 32)
	for n := range high {
		high[n] = 0xff
	}
	address := func(last byte) []byte { return append(make([]byte, 19), last) }
	f.Add(make([]byte, 16), address(1), address(2), address(3), address(4), address(5), []byte{1}, []byte{2}, uint32(1), uint32(2), uint32(3), false)
	f.Add(high[:16], high[:20], high[:20], high[:20], high[:20], high[:20], high, high, ^uint32(0), ^uint32(0), ^uint32(0), false)
	f.Add(high[:16], address(0), address(9), address(0), address(0), address(0), []byte{}, high[:17], uint32(0), uint32(1), uint32(1<<31), true)
	f.Fuzz(func(t *testing.T, id, sender, recipient, input, output, settler, amountIn, amountOut []byte, origin, destination, deadline uint32, native bool) {
		t.Parallel()
		account := func(address []byte) caip.AccountID {
			return caip.AccountID{Chain: caip.EIP155Chain(1), Address: common.BytesToAddress(address).Hex()}
		}
		units := func(amount []byte) *big.Int { return new(big.Int).SetBytes(amount[:min(len(amount), 32)]) }
		intent := &transfer.Intent{
			ID: uuid.UUID(common.LeftPadBytes(id, 16)[:16]), Type: transfer.Bridge, Status: transfer.Created,
			Source:      transfer.Leg{Account: account(sender), Token: account(input), Amount: units(amountIn)},
			Destination: transfer.Leg{Account: account(recipient), Token: account(output), Amount: units(amountOut)},
			Settlement: transfer.Settlement{
				OriginDomain: origin, DestinationDomain: destination,
				OriginSettler: account(settler).Address, DestinationSettler: account(settler).Address,
			},
			Deadline: time.Unix(int64(deadline), 0),
		}
		if native {
			intent.Source.Token.Address = token.NativeAddress
		}
		compareWithABI(t, intent)
	})
}

func compareWithABI(t *testing.T, intent *transfer.Intent) {
	t.Helper()
	padded := func(address string) [32]byte { return common.BytesToHash(common.HexToAddress(address).Bytes()) }
	input, settler := padded(intent.Source.Token.Address), intent.Settlement.OriginSettler
	native := token.Native(intent.Source.Token)
	if native {
		input = [32]byte{}
	}
	deadline := binary.BigEndian.Uint32(binary.BigEndian.AppendUint64(nil, uint64(intent.Deadline.Unix()))[4:])
	encoded, err := abiOrder.Pack(transfer.Order{
		Sender: padded(intent.Source.Account.Address), Recipient: padded(intent.Destination.Account.Address),
		InputToken: input, OutputToken: padded(intent.Destination.Token.Address),
		AmountIn: intent.Source.Amount, AmountOut: intent.Destination.Amount, SenderNonce: new(big.Int).SetBytes(intent.ID[:]),
		OriginDomain: intent.Settlement.OriginDomain, DestinationDomain: intent.Settlement.DestinationDomain,
		DestinationSettler: padded(settler), FillDeadline: deadline,
	})
	if err != nil {
		t.Fatal(err)
	}
	onchain := onchainOrder{deadline, transfer.OrderDataType, encoded}
	want := map[string]string{
		"order":  hexed(encoded),
		"id":     crypto.Keccak256Hash(encoded).Hex(),
		"open":   calldata(t, "open((uint32,bytes32,bytes))", abiOpen, onchain),
		"refund": calldata(t, "refund((uint32,bytes32,bytes)[])", abiRefund, []onchainOrder{onchain}),
	}
	if !native {
		amount := intent.Source.Amount
		want["approve"] = calldata(t, "approve(address,uint256)", abiToken, common.HexToAddress(settler), amount)
		want["transfer"] = calldata(t, "transfer(address,uint256)", abiToken, common.HexToAddress(intent.Destination.Account.Address), amount)
	}
	if diff := cmp.Diff(want, encodings(t, intent)); diff != "" {
		t.Errorf("differs from go-ethereum's encoding (-want +got):\n%s", diff)
	}
}

// encodings are those of this package.
func encodings(t *testing.T, intent *transfer.Intent) map[string]string {
	t.Helper()
	now := intent.Deadline.Add(-time.Second)
	order, err := intent.Order()
	if err != nil {
		t.Fatal(err)
	}
	open, err := intent.Tx(now)
	if err != nil {
		t.Fatal(err)
	}
	refund, err := intent.Refund(new(big.Int))
	if err != nil {
		t.Fatal(err)
	}
	id := order.ID()
	got := map[string]string{"order": hexed(order.Encoded), "id": hexed(id[:]), "open": hexed(open.Data), "refund": hexed(refund.Data)}
	if token.Native(intent.Source.Token) {
		return got
	}
	got["approve"] = hexed(open.Allowances[0].Approve.Data)
	plain := *intent
	plain.Type = transfer.Transfer
	sent, err := plain.Tx(now)
	if err != nil {
		t.Fatal(err)
	}
	got["transfer"] = hexed(sent.Data)
	return got
}

// What is no address or no uint256 is encoded nowhere.
func TestIntent_OrderOutOfRange(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*transfer.Intent){
		"negative amount":   func(i *transfer.Intent) { i.Source.Amount = big.NewInt(-1) },
		"amount of 2^256":   func(i *transfer.Intent) { i.Source.Amount = new(big.Int).Lsh(big.NewInt(1), 256) },
		"short address":     func(i *transfer.Intent) { i.Source.Account.Address = "0x12" },
		"long address":      func(i *transfer.Intent) { i.Settlement.DestinationSettler += "00" },
		"letters of no hex": func(i *transfer.Intent) { i.Destination.Account.Address = "0x" + strings.Repeat("zz", 20) },
	} {
		intent := benchIntent(transfer.Bridge)
		spoil(intent)
		if order, err := intent.Order(); err == nil {
			t.Errorf("%s: encoded as %x", name, order.Encoded)
		}
		if tx, err := intent.Tx(intent.CreatedAt); err == nil {
			t.Errorf("%s: the transaction is %+v", name, tx)
		}
	}
}
