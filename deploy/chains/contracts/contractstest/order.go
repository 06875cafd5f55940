package contractstest

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// OrderDataType is the EIP-712 type hash of OrderData that the service writes into its orders.
var OrderDataType = common.HexToHash("0x08d75650babf4de09c9273d48ef647876057ed91d4323f8a2e3ebc2cd8a63b5e")

// OnchainOrder is the settler's OnchainCrossChainOrder (ERC-7683).
type OnchainOrder struct {
	FillDeadline  uint32
	OrderDataType [32]byte
	OrderData     []byte
}

// OrderData is the settler's OrderData.
type OrderData struct {
	Sender, Recipient, InputToken, OutputToken [32]byte
	AmountIn, AmountOut, SenderNonce           *big.Int
	OriginDomain, DestinationDomain            uint32
	DestinationSettler                         [32]byte
	FillDeadline                               uint32
	Data                                       []byte
}

// Encode is abi.encode of the order data, word by word, so that it does not depend on an ABI.
func (o OrderData) Encode() []byte {
	number := func(n int) []byte { return common.BigToHash(big.NewInt(int64(n))).Bytes() }
	encoded := number(32)
	for _, word := range [][32]byte{o.Sender, o.Recipient, o.InputToken, o.OutputToken} {
		encoded = append(encoded, word[:]...)
	}
	for _, n := range []*big.Int{o.AmountIn, o.AmountOut, o.SenderNonce} {
		encoded = append(encoded, common.BigToHash(n).Bytes()...)
	}
	encoded = append(encoded, append(number(int(o.OriginDomain)), number(int(o.DestinationDomain))...)...)
	encoded = append(encoded, o.DestinationSettler[:]...)
	encoded = append(encoded, append(number(int(o.FillDeadline)), append(number(12*32), number(len(o.Data))...)...)...)
	return append(encoded, common.RightPadBytes(o.Data, (len(o.Data)+31)/32*32)...)
}

// ID is the order's id.
func (o OrderData) ID() common.Hash { return crypto.Keccak256Hash(o.Encode()) }

// Order returns the argument of open and refund.
func (o OrderData) Order() OnchainOrder {
	return OnchainOrder{o.FillDeadline, OrderDataType, o.Encode()}
}

// Word is an address in 32 bytes.
func Word(address common.Address) [32]byte { return common.BytesToHash(address[:]) }
