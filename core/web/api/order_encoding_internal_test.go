package api

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// ClientOrder is an order as a client reads it and encodes it, by the API's documentation alone.
type ClientOrder struct {
	InputSettler, User, InputOracle common.Address
	Nonce                           string
	OriginChainID                   uint64
	Expires, FillDeadline           uint32
	Inputs                          []struct {
		Token  common.Address
		Amount string
	}
	Outputs []struct {
		Oracle, Settler, Token, Recipient common.Hash
		ChainID                           uint64
		Amount                            string
		CallbackData, Context             hexutil.Bytes
	}
	Encoded []byte `json:"-"`
}

// UnmarshalJSON is needed for Encoded, which is hexadecimal in JSON.
func (o *ClientOrder) UnmarshalJSON(text []byte) error {
	type order ClientOrder
	var encoded struct{ Encoded hexutil.Bytes }
	if err := json.Unmarshal(text, (*order)(o)); err != nil {
		return err
	}
	err := json.Unmarshal(text, &encoded)
	o.Encoded = encoded.Encoded
	return err
}

// Encode returns the packed encoding of the named fields.
func (o *ClientOrder) Encode() ([]byte, error) {
	var inputs []byte
	for _, input := range o.Inputs {
		inputs = slices.Concat(inputs, common.LeftPadBytes(input.Token[:], 32), word(input.Amount))
	}
	outputs, err := o.encodeOutputs()
	if err != nil {
		return nil, err
	}
	return slices.Concat(
		word(fmt.Sprint(o.OriginChainID)), o.InputSettler[:], o.User[:], word(o.Nonce),
		binary.BigEndian.AppendUint32(nil, o.Expires), binary.BigEndian.AppendUint32(nil, o.FillDeadline),
		o.InputOracle[:], crypto.Keccak256(inputs), outputs,
	), nil
}

func (o *ClientOrder) encodeOutputs() ([]byte, error) {
	tuples, err := abi.NewType("tuple[]", "", []abi.ArgumentMarshaling{
		{Name: "oracle", Type: "bytes32"},
		{Name: "settler", Type: "bytes32"},
		{Name: "chainId", Type: "uint256"},
		{Name: "token", Type: "bytes32"},
		{Name: "amount", Type: "uint256"},
		{Name: "recipient", Type: "bytes32"},
		{Name: "callbackData", Type: "bytes"},
		{Name: "context", Type: "bytes"},
	})
	if err != nil {
		return nil, err
	}
	type output struct {
		Oracle, Settler       [32]byte
		ChainId               *big.Int // as go-ethereum spells chainId
		Token                 [32]byte
		Amount                *big.Int
		Recipient             [32]byte
		CallbackData, Context []byte
	}
	var values []output
	for _, out := range o.Outputs {
		values = append(values, output{
			Oracle: out.Oracle, Settler: out.Settler, ChainId: new(big.Int).SetUint64(out.ChainID), Token: out.Token,
			Amount: new(big.Int).SetBytes(word(out.Amount)), Recipient: out.Recipient, CallbackData: out.CallbackData, Context: out.Context,
		})
	}
	return abi.Arguments{{Type: tuples}}.Pack(values)
}

// word is a decimal number as 32 bytes.
func word(decimal string) []byte {
	n, _ := new(big.Int).SetString(decimal, 10)
	return common.BigToHash(n).Bytes()
}

// The order id of a settled order, but for its context, whose contracts give the id 0x4560bc6f….
func TestRecord_RecordedOrder(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../transfer/testdata/recorded_oif.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Vectors []struct {
			Settler string
			OrderID common.Hash
			Order   struct {
				User, Nonce, InputOracle string
				Expires, FillDeadline    int64
				Inputs                   [][2]string
				Outputs                  []struct {
					Oracle, Settler, Token, Recipient common.Hash
					Amount                            string
				}
			}
		}
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	vector := recorded.Vectors[1]
	order, output := vector.Order, vector.Order.Outputs[0]
	leg := func(chain uint64, account, token string, amount string) transfer.Leg {
		id := caip.EIP155Chain(chain)
		return transfer.Leg{
			Account: caip.AccountID{Chain: id, Address: account}, Token: caip.AccountID{Chain: id, Address: token},
			Amount: new(big.Int).SetBytes(word(amount)),
		}
	}
	address := func(padded []byte) string { return common.BytesToAddress(padded).Hex() }
	record, err := intents.NewRecord(&transfer.Intent{
		ID: uuid.UUID(word(order.Nonce)[16:]), Type: transfer.Bridge, Status: transfer.Created, Deadline: time.Unix(order.FillDeadline, 0),
		Source:      leg(11155111, order.User, address(word(order.Inputs[0][0])), order.Inputs[0][1]),
		Destination: leg(84532, address(output.Recipient[:]), address(output.Token[:]), output.Amount),
		Settlement: transfer.Settlement{
			Scheme: registry.StandardOrder, InputSettler: vector.Settler, InputOracle: order.InputOracle, Expires: time.Unix(order.Expires, 0),
			OutputSettler: address(output.Settler[:]), OutputOracle: address(output.Oracle[:]),
		},
	}, transfer.Moment{Now: time.Unix(0, 0), BlockTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Order ClientOrder }
	if err := json.Unmarshal(appendRecord(nil, record), &got); err != nil {
		t.Fatal(err)
	}
	encoded, err := got.Order.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encoded, got.Order.Encoded); diff != "" {
		t.Errorf("encoded (-rebuilt +got):\n%s", diff)
	}
	if id := crypto.Keccak256Hash(encoded); id != vector.OrderID || !strings.HasPrefix(id.Hex(), "0x4560bc6f") {
		t.Errorf("order id %s, want %s", id, vector.OrderID)
	}
}
