package anvil

import (
	"math/big"
	"testing"

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

// Attestation returns the transaction by which the owner of an OwnedOracle attests the first fill (OutputFilled) in a receipt of
// another chain.
func (d Deployed) Attestation(tb testing.TB, owner common.Address, filled Receipt) Transaction {
	tb.Helper()
	event := Compiled(tb, "OutputSettlerSimple").ABI.Events["OutputFilled"]
	for _, l := range filled.Logs {
		if len(l.Topics) != 2 || l.Topics[0] != event.ID {
			continue
		}
		values, err := event.Inputs.NonIndexed().Unpack(l.Data)
		if err != nil {
			tb.Fatal(err)
		}
		return d.Transaction(tb, owner, "setAttestation", l.Topics[1], values[0], values[1], values[2])
	}
	tb.Fatalf("no fill in %+v", filled)
	return Transaction{}
}
