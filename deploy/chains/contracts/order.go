package contracts

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// StandardOrder is the order of InputSettlerEscrow, for Pack and abi.ConvertType.
type StandardOrder struct {
	User                  common.Address
	Nonce, OriginChainId  *big.Int
	Expires, FillDeadline uint32
	InputOracle           common.Address
	Inputs                [][2]*big.Int
	Outputs               []MandateOutput
}

// MandateOutput is the output of OutputSettlerSimple.
type MandateOutput struct {
	Oracle, Settler       [32]byte
	ChainId               *big.Int
	Token                 [32]byte
	Amount                *big.Int
	Recipient             [32]byte
	CallbackData, Context []byte
}

// SolveParams tells InputSettlerEscrow when an output was filled and by whom.
type SolveParams struct {
	Timestamp uint32
	Solver    [32]byte
}

// Word is an address in 32 bytes.
func Word(address common.Address) [32]byte { return common.BytesToHash(address[:]) }
