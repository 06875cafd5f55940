package transfer

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"
)

// orderDataType is the EIP-712 type string of the order data that the Hyperlane/BootNode settler understands.
const orderDataType = "OrderData(bytes32 sender,bytes32 recipient,bytes32 inputToken,bytes32 outputToken," +
	"uint256 amountIn,uint256 amountOut,uint256 senderNonce,uint32 originDomain,uint32 destinationDomain," +
	"bytes32 destinationSettler,uint32 fillDeadline,bytes data)"

// OrderDataType is the Keccak-256 of the type string; an ERC-7683 order identifies the type of its data by it.
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
	// Encoded is abi.encode of the fields above as one tuple, including its outer offset word.
	Encoded []byte
	// onchain is abi.encode of ERC-7683's OnchainCrossChainOrder without its outer offset word; its last bytes are Encoded.
	onchain []byte
}

// ID returns the order id: Keccak-256 of the encoded order.
func (o Order) ID() [32]byte { return crypto.Keccak256Hash(o.Encoded) }

// Order builds the order of an intent. The nonce is the intent's id as a 128-bit number, so an order seen on chain identifies its
// intent.
func (i *Intent) Order() (Order, error) {
	order := Order{
		AmountIn:          i.Source.Amount,
		AmountOut:         i.Destination.Amount,
		SenderNonce:       new(big.Int).SetBytes(i.ID[:]),
		OriginDomain:      i.Settlement.OriginDomain,
		DestinationDomain: i.Settlement.DestinationDomain,
		FillDeadline:      uint32(i.Deadline.Unix()), //nolint:gosec // a deadline is at most days away; 32 bits last until 2106
		Data:              []byte{},
	}
	err := errors.Join(
		putAddress(&order.Sender, i.Source.Account.Address),
		putAddress(&order.Recipient, i.Destination.Account.Address),
		putAddress(&order.InputToken, tokenAddress(i.Source.Token)),
		putAddress(&order.OutputToken, tokenAddress(i.Destination.Token)),
		putAddress(&order.DestinationSettler, i.Settlement.DestinationSettler),
	)
	if err == nil {
		err = order.encode()
	}
	if err != nil {
		return Order{}, fmt.Errorf("encode the order of transfer %s: %w", i.ID, err)
	}
	return order, nil
}

// Lengths of the encoded tuples' heads: one word per field.
const (
	orderHead   = 12 * word
	onchainHead = 3 * word
)

// encode sets Encoded and onchain. It does not use go-ethereum's encoder, which uses reflection and takes ten times as long.
func (o *Order) encode() error {
	padding := -len(o.Data) & (word - 1)
	length := word + orderHead + word + len(o.Data) + padding // of Encoded
	b := make([]byte, onchainHead+word+length)
	at := func(n int) []byte { return b[n*word : (n+1)*word] }
	putUint(at(0), uint64(o.FillDeadline))
	copy(at(1), OrderDataType[:])
	putUint(at(2), onchainHead) // the offset of orderData
	putUint(at(3), uint64(length))
	putUint(at(4), word) // the offset of the tuple
	copy(at(5), o.Sender[:])
	copy(at(6), o.Recipient[:])
	copy(at(7), o.InputToken[:])
	copy(at(8), o.OutputToken[:])
	if err := putBig(at(9), o.AmountIn); err != nil {
		return err
	}
	if err := putBig(at(10), o.AmountOut); err != nil {
		return err
	}
	if err := putBig(at(11), o.SenderNonce); err != nil {
		return err
	}
	putUint(at(12), uint64(o.OriginDomain))
	putUint(at(13), uint64(o.DestinationDomain))
	copy(at(14), o.DestinationSettler[:])
	putUint(at(15), uint64(o.FillDeadline))
	putUint(at(16), orderHead) // the offset of data
	putUint(at(17), uint64(len(o.Data)))
	copy(b[18*word:], o.Data)
	o.onchain, o.Encoded = b, b[onchainHead+word:]
	return nil
}
