package transfer_test

import (
	"encoding/binary"
	"encoding/hex"
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

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

const (
	outputType = "(bytes32,bytes32,uint256,bytes32,uint256,bytes32,bytes,bytes)"
	orderType  = "(address,uint256,uint256,uint32,uint32,address,uint256[2][]," + outputType + "[])"
)

// abiOutput is a MandateOutput, and abiOrder a StandardOrder, as go-ethereum's encoder takes them.
type abiOutput struct {
	Oracle, Settler       [32]byte
	ChainId               *big.Int // the encoder spells chainId so
	Token                 [32]byte
	Amount                *big.Int
	Recipient             [32]byte
	CallbackData, Context []byte
}

type abiOrder struct {
	User                  common.Address
	Nonce, OriginChainId  *big.Int
	Expires, FillDeadline uint32
	InputOracle           common.Address
	Inputs                [][2]*big.Int
	Outputs               []abiOutput
}

var (
	outputFields = fields("bytes32 oracle,bytes32 settler,uint256 chainId,bytes32 token,uint256 amount,bytes32 recipient,bytes callbackData,bytes context")
	orderFields  = append(fields("address user,uint256 nonce,uint256 originChainId,uint32 expires,uint32 fillDeadline,address inputOracle,uint256[2][] inputs"),
		abi.ArgumentMarshaling{Name: "outputs", Type: "tuple[]", Components: outputFields})

	orderArgument   = argument("tuple", orderFields)
	outputArgument  = argument("tuple", outputFields)
	outputsArgument = argument("tuple[]", outputFields)
	bytes32Argument = argument("bytes32", nil)
	addressArgument = argument("address", nil)
	uint256Argument = argument("uint256", nil)
)

func fields(list string) (out []abi.ArgumentMarshaling) {
	for field := range strings.SplitSeq(list, ",") {
		kind, name, _ := strings.Cut(field, " ")
		out = append(out, abi.ArgumentMarshaling{Name: name, Type: kind})
	}
	return out
}

func argument(kind string, components []abi.ArgumentMarshaling) abi.Argument {
	parsed, err := abi.NewType(kind, "", components)
	if err != nil {
		panic(fmt.Sprintf("ABI type %s: %v", kind, err))
	}
	return abi.Argument{Name: "argument", Type: parsed}
}

// encode is abi.encode of the values as go-ethereum does it.
func encode(inputs abi.Arguments, values ...any) []byte {
	packed, err := inputs.Pack(values...)
	if err != nil {
		panic(err)
	}
	return packed
}

// calldata is the call of a function.
func calldata(signature string, inputs abi.Arguments, values ...any) string {
	return hexed(append(crypto.Keccak256([]byte(signature))[:4], encode(inputs, values...)...))
}

func hexed(b []byte) string { return "0x" + hex.EncodeToString(b) }

// encoded is abi.encode of the order.
func (o abiOrder) encoded() []byte { return encode(abi.Arguments{orderArgument}, o) }

// packed is what the order id is the Keccak-256 of, after the formula of the Open Intents Framework's StandardOrderType.
func (o abiOrder) packed(settler common.Address) (packed []byte) {
	var inputs []byte
	for _, input := range o.Inputs {
		inputs = append(append(inputs, common.BigToHash(input[0]).Bytes()...), common.BigToHash(input[1]).Bytes()...)
	}
	for _, part := range [][]byte{
		common.BigToHash(o.OriginChainId).Bytes(), settler.Bytes(), o.User.Bytes(), common.BigToHash(o.Nonce).Bytes(),
		binary.BigEndian.AppendUint32(nil, o.Expires), binary.BigEndian.AppendUint32(nil, o.FillDeadline), o.InputOracle.Bytes(),
		crypto.Keccak256(inputs), encode(abi.Arguments{outputsArgument}, o.Outputs),
	} {
		packed = append(packed, part...)
	}
	return packed
}

func padded(address string) common.Hash {
	return common.BytesToHash(common.HexToAddress(address).Bytes())
}

// abiOf is the order of an intent.
func abiOf(i *transfer.Intent) abiOrder {
	number := func(id caip.ChainID) *big.Int { return bigInt(id.Reference) }
	asset := func(id caip.AccountID) common.Hash {
		if registry.Native(id) {
			return common.Hash{}
		}
		return padded(id.Address)
	}
	s := i.Settlement
	return abiOrder{
		User: common.HexToAddress(i.Source.Account.Address), Nonce: new(big.Int).SetBytes(i.ID[:]), OriginChainId: number(i.Source.Account.Chain),
		Expires: uint32(s.Expires.Unix()), FillDeadline: uint32(i.Deadline.Unix()), InputOracle: common.HexToAddress(s.InputOracle),
		Inputs: [][2]*big.Int{{asset(i.Source.Token).Big(), i.Source.Amount}},
		Outputs: []abiOutput{{
			Oracle: padded(s.OutputOracle), Settler: padded(s.OutputSettler), ChainId: number(i.Destination.Account.Chain),
			Token: asset(i.Destination.Token), Amount: i.Destination.Amount, Recipient: padded(i.Destination.Account.Address),
		}},
	}
}

// FuzzIntent_Calldata compares the order and the calldata of any intent with go-ethereum's encoding of them.
func FuzzIntent_Calldata(f *testing.F) {
	full := []byte(strings.Repeat("\xff", 180))
	f.Add(make([]byte, 180), []byte{1}, []byte{2}, uint64(1), uint64(2), uint32(3), uint32(4), false, false)
	f.Add(full, full[:32], full[:32], ^uint64(0), ^uint64(0), ^uint32(0), ^uint32(0), false, true)
	f.Add(full, []byte{}, full[:17], uint64(31337), uint64(31338), uint32(1<<31), uint32(1<<31-1), true, false)
	f.Fuzz(func(t *testing.T, bytes, amountIn, amountOut []byte, origin, destination uint64, expires, deadline uint32, nativeIn, nativeOut bool) {
		t.Parallel()
		bytes = append(bytes, make([]byte, 180)...)
		address := func(n int) string { return common.BytesToAddress(bytes[20*n : 20*(n+1)]).Hex() }
		account := func(chain uint64, n int) caip.AccountID {
			return caip.AccountID{Chain: caip.EIP155Chain(chain), Address: address(n)}
		}
		units := func(amount []byte) *big.Int { return new(big.Int).SetBytes(amount[:min(len(amount), 32)]) }
		intent := &transfer.Intent{
			ID: uuid.UUID(bytes[160:176]), Type: transfer.Bridge, Status: transfer.Created,
			Source:      transfer.Leg{Account: account(origin, 0), Token: account(origin, 1), Amount: units(amountIn)},
			Destination: transfer.Leg{Account: account(destination, 2), Token: account(destination, 3), Amount: units(amountOut)},
			Settlement: transfer.Settlement{
				Scheme: registry.StandardOrder, InputSettler: address(4), OutputSettler: address(5), InputOracle: address(6), OutputOracle: address(7),
				Expires: time.Unix(int64(expires), 0),
			},
			Deadline: time.Unix(int64(deadline), 0),
		}
		if nativeIn {
			intent.Source.Token.Address = registry.NativeAddress
		}
		if nativeOut {
			intent.Destination.Token.Address = registry.NativeAddress
		}
		if diff := cmp.Diff(wantEncodings(intent), encodings(t, intent)); diff != "" {
			t.Errorf("differs from go-ethereum's encoding (-want +got):\n%s", diff)
		}
	})
}

// wantEncodings are those of go-ethereum.
func wantEncodings(intent *transfer.Intent) map[string]string {
	order, settler, amount := abiOf(intent), common.HexToAddress(intent.Settlement.InputSettler), intent.Source.Amount
	packed := order.packed(settler)
	id := crypto.Keccak256Hash(packed)
	want := map[string]string{
		"packed": hexed(packed), "id": id.Hex(),
		"open":        calldata("open("+orderType+")", abi.Arguments{orderArgument}, order),
		"refund":      calldata("refund("+orderType+")", abi.Arguments{orderArgument}, order),
		"status":      calldata("orderStatus(bytes32)", abi.Arguments{bytes32Argument}, id),
		"fill record": calldata("getFillRecord(bytes32,"+outputType+")", abi.Arguments{bytes32Argument, outputArgument}, id, order.Outputs[0]),
	}
	if registry.Native(intent.Source.Token) {
		return want
	}
	call := func(signature string, account common.Address, amount *big.Int) string {
		return calldata(signature, abi.Arguments{addressArgument, uint256Argument}, account, amount)
	}
	want["approve"] = call("approve(address,uint256)", settler, amount)
	want["reset"] = call("approve(address,uint256)", settler, new(big.Int))
	want["transfer"] = call("transfer(address,uint256)", common.HexToAddress(intent.Destination.Account.Address), amount)
	return want
}

// encodings are those of this package.
func encodings(t *testing.T, intent *transfer.Intent) map[string]string {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	long := intent.Deadline.Add(-time.Minute)
	order, err := intent.Order()
	must(err)
	open, err := intent.Tx(transfer.Moment{Now: long, BlockTime: time.Second})
	must(err)
	refund, err := intent.Refund()
	must(err)
	id := order.ID()
	identified := *intent
	identified.OrderID = id
	record, err := identified.FillRecordCall()
	must(err)
	got := map[string]string{
		"packed": hexed(order.Encoded), "id": hexed(id[:]), "open": hexed(open.Data), "refund": hexed(refund.Data),
		"status": hexed(transfer.OrderStatusCall(id)), "fill record": hexed(record),
	}
	if registry.Native(intent.Source.Token) {
		return got
	}
	got["approve"], got["reset"] = hexed(open.Allowances[0].Approve.Data), hexed(open.Allowances[0].Reset.Data)
	plain := *intent
	plain.Type = transfer.Transfer
	sent, err := plain.Tx(transfer.Moment{Now: long, BlockTime: time.Second})
	must(err)
	got["transfer"] = hexed(sent.Data)
	return got
}

// What is no address or no uint256 is encoded nowhere.
func TestIntent_OrderOutOfRange(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*transfer.Intent){
		"negative amount":      func(i *transfer.Intent) { i.Source.Amount = big.NewInt(-1) },
		"amount of 2^256":      func(i *transfer.Intent) { i.Source.Amount = new(big.Int).Lsh(big.NewInt(1), 256) },
		"output of 2^256":      func(i *transfer.Intent) { i.Destination.Amount = new(big.Int).Lsh(big.NewInt(1), 256) },
		"short address":        func(i *transfer.Intent) { i.Source.Account.Address = "0x12" },
		"long output settler":  func(i *transfer.Intent) { i.Settlement.OutputSettler += "00" },
		"input settler, cut":   func(i *transfer.Intent) { i.Settlement.InputSettler = i.Settlement.InputSettler[:40] },
		"oracle without 0x":    func(i *transfer.Intent) { i.Settlement.InputOracle = i.Settlement.InputOracle[2:] },
		"letters of no hex":    func(i *transfer.Intent) { i.Destination.Account.Address = "0x" + strings.Repeat("zz", 20) },
		"output token, no hex": func(i *transfer.Intent) { i.Destination.Token.Address = "0x" + strings.Repeat("g0", 20) },
	} {
		intent := newIntent(transfer.Bridge)
		spoil(intent)
		if order, err := intent.Order(); err == nil {
			t.Errorf("%s: encoded as %x", name, order.Encoded)
		}
		if tx, err := intent.Tx(transfer.Moment{Now: intent.CreatedAt, BlockTime: time.Second}); err == nil {
			t.Errorf("%s: the transaction is %+v", name, tx)
		}
	}
}
