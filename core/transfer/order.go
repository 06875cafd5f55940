package transfer

import (
	"encoding/binary"
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
	if err := order.encode(); err != nil {
		return Order{}, fmt.Errorf("encode the order of transfer %s: %w", i.ID, err)
	}
	return order, nil
}

// word is the length of an ABI word.
const word = 32

// encode sets Encoded. A POST encodes its order two or three times; go-ethereum's encoder, which uses reflection, makes that a fifth of
// core's CPU time for the request.
func (o *Order) encode() error {
	const fields = 12
	encoded := make([]byte, 0, (1+fields+1)*word+(len(o.Data)+word-1)/word*word)
	number := func(n uint64) { encoded = binary.BigEndian.AppendUint64(append(encoded, make([]byte, word-8)...), n) }
	number(word) // the offset of the tuple
	for _, w := range [][word]byte{o.Sender, o.Recipient, o.InputToken, o.OutputToken} {
		encoded = append(encoded, w[:]...)
	}
	for _, n := range []*big.Int{o.AmountIn, o.AmountOut, o.SenderNonce} {
		if n.Sign() < 0 || n.BitLen() > 8*word {
			return fmt.Errorf("%s is no uint256", n)
		}
		encoded = append(encoded, make([]byte, word)...)
		n.FillBytes(encoded[len(encoded)-word:])
	}
	number(uint64(o.OriginDomain))
	number(uint64(o.DestinationDomain))
	encoded = append(encoded, o.DestinationSettler[:]...)
	number(uint64(o.FillDeadline))
	number(fields * word) // the offset of the data, from the tuple's first field
	number(uint64(len(o.Data)))
	encoded = append(encoded, o.Data...)
	o.Encoded = encoded[:cap(encoded)] // zeros fill the last word
	return nil
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
