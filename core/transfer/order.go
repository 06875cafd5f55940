package transfer

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/token"
)

// orderDataType is the EIP-712 type string of the order data that the Hyperlane/BootNode settler understands.
const orderDataType = "OrderData(bytes32 sender,bytes32 recipient,bytes32 inputToken,bytes32 outputToken," +
	"uint256 amountIn,uint256 amountOut,uint256 senderNonce,uint32 originDomain,uint32 destinationDomain," +
	"bytes32 destinationSettler,uint32 fillDeadline,bytes data)"

// OrderDataType is the Keccak-256 of the type string; an ERC-7683 order names the type of its data by it.
var OrderDataType = crypto.Keccak256Hash([]byte(orderDataType))

// Order is the OrderData of an intent (ERC-7683 as revised on 2025-01-08). The field names are those of the ABI.
type Order struct {
	Sender             [32]byte
	Recipient          [32]byte
	InputToken         [32]byte
	OutputToken        [32]byte
	AmountIn           *big.Int
	AmountOut          *big.Int
	SenderNonce        *big.Int
	OriginDomain       uint32
	DestinationDomain  uint32
	DestinationSettler [32]byte
	FillDeadline       uint32
	Data               []byte
	// Encoded is abi.encode of the fields above as one tuple, its outer offset word included.
	Encoded []byte
}

// ID is the order id: Keccak-256 of the encoded order.
func (o Order) ID() [32]byte { return crypto.Keccak256Hash(o.Encoded) }

// Order builds the order of an intent. The nonce is the intent's id as a 128-bit number, so an order seen on chain
// leads back to its intent.
func (i *Intent) Order() (Order, error) {
	order := Order{
		Sender:             padAddress(i.Source.Account.Address),
		Recipient:          padAddress(i.Destination.Account.Address),
		InputToken:         padToken(i.Source.Token.Address),
		OutputToken:        padToken(i.Destination.Token.Address),
		AmountIn:           i.Source.Amount,
		AmountOut:          i.Destination.Amount,
		SenderNonce:        new(big.Int).SetBytes(i.ID[:]),
		OriginDomain:       i.Settlement.OriginDomain,
		DestinationDomain:  i.Settlement.DestinationDomain,
		DestinationSettler: padAddress(i.Settlement.DestinationSettler),
		FillDeadline:       uint32(i.Deadline.Unix()), //nolint:gosec // a deadline is at most days away; 32 bits last until 2106
		Data:               []byte{},
	}
	encoded, err := orderArguments.Pack(order)
	if err != nil {
		return Order{}, fmt.Errorf("encode the order of transfer %s: %w", i.ID, err)
	}
	order.Encoded = encoded
	return order, nil
}

// padToken writes the native asset as address(0), as order data does.
func padToken(address string) [32]byte {
	if address == token.NativeAddress {
		return [32]byte{}
	}
	return padAddress(address)
}

// padAddress left-pads to 32 bytes; an empty address is all zeros.
func padAddress(address string) [32]byte { return common.BytesToHash(common.FromHex(address)) }

var orderArguments = arguments(abi.ArgumentMarshaling{Name: "order", Type: "tuple", Components: components(orderDataType)})

// components reads the fields of an EIP-712 type string, so that the encoding always fits the type.
func components(typeString string) []abi.ArgumentMarshaling {
	_, list, _ := strings.Cut(strings.TrimSuffix(typeString, ")"), "(")
	var fields []abi.ArgumentMarshaling
	for field := range strings.SplitSeq(list, ",") {
		kind, name, _ := strings.Cut(field, " ")
		fields = append(fields, abi.ArgumentMarshaling{Name: name, Type: kind})
	}
	return fields
}

// arguments panics on a type the ABI does not have: the types are constants of this package.
func arguments(list ...abi.ArgumentMarshaling) abi.Arguments {
	var out abi.Arguments
	for _, a := range list {
		t, err := abi.NewType(a.Type, "", a.Components)
		if err != nil {
			panic(fmt.Sprintf("transfer: ABI type %s: %v", a.Type, err))
		}
		out = append(out, abi.Argument{Name: a.Name, Type: t})
	}
	return out
}
