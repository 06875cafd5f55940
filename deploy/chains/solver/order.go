package solver

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// order is an order that a settler has opened.
type order struct {
	id    common.Hash
	block uint64
	terms orderData
	// encoded is the encoded terms, whose hash is the id.
	encoded []byte
	// fault is why the event cannot be decoded.
	fault error

	seen, notBefore time.Time
	refusals        int
}

// orderData are the terms of an order, with the members of the settler's OrderData.
type orderData struct {
	Sender, Recipient, InputToken, OutputToken [32]byte
	AmountIn, AmountOut, SenderNonce           *big.Int
	OriginDomain, DestinationDomain            uint32
	DestinationSettler                         [32]byte
	FillDeadline                               uint32
	Data                                       []byte
}

// resolvedOrder is ResolvedCrossChainOrder (ERC-7683).
type resolvedOrder struct {
	User                  common.Address
	OriginChainId         *big.Int
	OpenDeadline          uint32
	FillDeadline          uint32
	OrderId               [32]byte
	MaxSpent, MinReceived []output
	FillInstructions      []fillInstruction
}

type output struct {
	Token     [32]byte
	Amount    *big.Int
	Recipient [32]byte
	ChainId   *big.Int
}

type fillInstruction struct {
	DestinationChainId *big.Int
	DestinationSettler [32]byte
	OriginData         []byte
}

// orderDataType is the EIP-712 type string of the order data, the same as the settler's.
const orderDataType = "OrderData(bytes32 sender,bytes32 recipient,bytes32 inputToken,bytes32 outputToken,uint256 amountIn," +
	"uint256 amountOut,uint256 senderNonce,uint32 originDomain,uint32 destinationDomain,bytes32 destinationSettler," +
	"uint32 fillDeadline,bytes data)"

var orderDataArguments = func() abi.Arguments {
	_, list, _ := strings.Cut(strings.TrimSuffix(orderDataType, ")"), "(")
	var members []abi.ArgumentMarshaling
	for field := range strings.SplitSeq(list, ",") {
		kind, name, _ := strings.Cut(field, " ")
		members = append(members, abi.ArgumentMarshaling{Name: name, Type: kind})
	}
	tuple, err := abi.NewType("tuple", "", members)
	if err != nil {
		panic(err) // the type string is constant
	}
	return abi.Arguments{{Type: tuple}}
}()

// newOrder decodes an Open event. An order that cannot be decoded has a fault.
func newOrder(id common.Hash, event []byte, block uint64) *order {
	now := time.Now()
	o := &order{id: id, block: block, seen: now, notBefore: now}
	o.fault = o.decode(event)
	return o
}

func (o *order) decode(event []byte) error {
	values, err := settlerABI.Events["Open"].Inputs.NonIndexed().Unpack(event)
	if err != nil {
		return fmt.Errorf("decode the event: %w", err)
	}
	resolved := *abi.ConvertType(values[0], new(resolvedOrder)).(*resolvedOrder) //nolint:forcetypeassert // the type is asked for
	if len(resolved.FillInstructions) != 1 || len(resolved.MaxSpent) != 1 {
		return errors.New("the order has several outputs")
	}
	o.encoded = resolved.FillInstructions[0].OriginData
	if crypto.Keccak256Hash(o.encoded) != o.id {
		return errors.New("the order id is not the hash of its data")
	}
	values, err = orderDataArguments.Unpack(o.encoded)
	if err != nil {
		return fmt.Errorf("decode the order data: %w", err)
	}
	o.terms = *abi.ConvertType(values[0], new(orderData)).(*orderData) //nolint:forcetypeassert // the type is asked for
	if resolved.MaxSpent[0].Token != o.terms.OutputToken || resolved.MaxSpent[0].Amount.Cmp(o.terms.AmountOut) != 0 {
		return errors.New("the resolved order asks for another output than its data")
	}
	return nil
}

// outputToken returns the zero address for the native asset.
func (o *order) outputToken() common.Address { return common.BytesToAddress(o.terms.OutputToken[:]) }

// native reports whether the output is the chain's native asset.
func (o *order) native() bool { return o.terms.OutputToken == [32]byte{} }
