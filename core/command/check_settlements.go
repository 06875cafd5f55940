package command

import (
	"bytes"
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/transfer"
)

// fillRecordCall asks an output settler for its record of a fill that there cannot be, that of the order and the output 0.
var fillRecordCall = append(crypto.Keccak256([]byte("getFillRecord(bytes32,bytes32)"))[:4], make([]byte, 2*32)...)

// contractCheck is what is asked of one contract of a settlement.
type contractCheck struct {
	deployment, name string
	address          common.Address
	code             *rpc.Call[[]byte]
	// zero is a call whose answer must be a zero word, nil for a contract that is only looked up. function names it.
	zero     *rpc.Call[[]byte]
	function string
}

func newContractCheck(s chain.Settlement, name, address string) contractCheck {
	c := contractCheck{deployment: s.Deployment, name: name, address: common.HexToAddress(address)}
	c.code = rpc.Code(c.address, rpc.Latest)
	return c
}

func (c contractCheck) callsForZero(function string, data []byte) contractCheck {
	c.function, c.zero = function, rpc.CallContract(rpc.Message{To: c.address, Data: data}, rpc.Latest)
	return c
}

// checkSettlements asks, all in one batch, whether the contracts of each deployment are there and are settlers.
func (f *finding) checkSettlements(ctx context.Context, p *rpc.Provider, settlements []chain.Settlement) {
	var checks []contractCheck
	for _, s := range settlements {
		checks = append(checks,
			newContractCheck(s, "input settler", s.InputSettler).callsForZero("orderStatus(0)", transfer.OrderStatusCall([32]byte{})),
			newContractCheck(s, "output settler", s.OutputSettler).callsForZero("getFillRecord(0, 0)", fillRecordCall),
			newContractCheck(s, "oracle", s.Oracle))
	}
	var calls []rpc.Request
	for _, c := range checks {
		calls = append(calls, c.code)
		if c.zero != nil {
			calls = append(calls, c.zero)
		}
	}
	if len(calls) == 0 {
		return
	}
	err := ask(ctx, p, calls...)
	if !slices.ContainsFunc(calls, func(c rpc.Request) bool { return c.Err() == nil }) {
		f.problem("the contracts of its settlements: %v", err)
		return
	}
	for _, c := range checks {
		f.checkContract(c)
	}
}

func (f *finding) checkContract(c contractCheck) {
	code, err := c.code.Result()
	switch {
	case err != nil:
		f.problem("%s: code of the %s %s: %v", c.deployment, c.name, c.address, err)
		return
	case len(code) == 0:
		f.problem("%s: no code at the %s %s", c.deployment, c.name, c.address)
		return
	case c.zero == nil:
		return
	}
	answer, err := c.zero.Result()
	switch {
	case err != nil:
		f.problem("%s: %s of the %s %s: %v", c.deployment, c.function, c.name, c.address, err)
	case !bytes.Equal(answer, make([]byte, 32)):
		f.problem("%s: %s of the %s %s answers 0x%x, not a zero word", c.deployment, c.function, c.name, c.address, answer[:min(len(answer), 32)])
	}
}
