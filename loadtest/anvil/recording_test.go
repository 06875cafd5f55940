package anvil_test

import (
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/loadtest/anvil"
)

// recording is what the contracts of the Open Intents Framework answered; its member about.reading explains it.
type recording struct {
	Chains []struct {
		ChainID                                           uint64
		InputSettler, NativeEscrow, OutputSettler, Oracle common.Address
		USD6, WAD18                                       common.Address
		FalseToken, SilentToken, RecipientWithCode        common.Address
	}
	Contracts struct{ Accounts map[string]common.Address }
	Cases     []recordedCase
}

type recordedCase struct {
	Name, Variant string
	OrderID       common.Hash
	Order         recordedOrder
	Steps         []recordedStep
}

type recordedOrder struct {
	User                  common.Address
	Nonce, OriginChainID  string
	Expires, FillDeadline uint32
	InputOracle           common.Address
	Inputs                [][2]string
	Outputs               []struct {
		Oracle, Settler       common.Hash
		ChainID               string
		Token                 common.Hash
		Amount                string
		Recipient             common.Hash
		CallbackData, Context hexutil.Bytes
	}
}

type recordedStep struct {
	Step                 string
	Chain                uint64
	From                 string
	To                   common.Address
	Value, Data, UserGot string
	Time, Status         uint64
	Revert               hexutil.Bytes
	Logs                 []recordedLog
	After                *state
}

type recordedLog struct {
	Address common.Address
	Topics  []common.Hash
	Data    string
}

// state is what the settlers say about an order.
type state struct {
	OrderStatus uint8
	FillRecord  []string
}

func readRecording(t *testing.T) (r recording) {
	t.Helper()
	text, err := os.ReadFile("../../core/transfer/testdata/recorded_oif.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// order converts the case's order for the ABI.
func (c recordedCase) order() anvil.StandardOrder {
	o := anvil.StandardOrder{
		User: c.Order.User, Nonce: number(c.Order.Nonce), OriginChainId: number(c.Order.OriginChainID),
		Expires: c.Order.Expires, FillDeadline: c.Order.FillDeadline, InputOracle: c.Order.InputOracle,
	}
	for _, in := range c.Order.Inputs {
		o.Inputs = append(o.Inputs, [2]*big.Int{number(in[0]), number(in[1])})
	}
	for _, out := range c.Order.Outputs {
		o.Outputs = append(o.Outputs, anvil.MandateOutput{
			Oracle: out.Oracle, Settler: out.Settler, ChainId: number(out.ChainID), Token: out.Token, Amount: number(out.Amount),
			Recipient: out.Recipient, CallbackData: out.CallbackData, Context: out.Context,
		})
	}
	return o
}

func number(text string) *big.Int {
	n, _ := new(big.Int).SetString(text, 10)
	return n
}
