package command

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// fillRecordCall asks an output settler for its record of a fill that there cannot be, that of the order and the output 0.
var fillRecordCall = append(crypto.Keccak256([]byte("getFillRecord(bytes32,bytes32)"))[:4], make([]byte, 2*32)...)

// provenCall asks an oracle for the proof of a fill that there cannot be. One that has it proves everything, and anybody takes the deposits of its
// orders; a token is no oracle and answers something else.
var provenCall = append(crypto.Keccak256([]byte("isProven(uint256,bytes32,bytes32,bytes32)"))[:4], make([]byte, 4*32)...)

// contractCheck is what is asked of one contract of a settlement.
type contractCheck struct {
	deployment, name string
	address          common.Address
	code             *rpc.Call[[]byte]
	// zero is a call whose answer must be a zero word, nil for a contract that is only looked up. function names it.
	zero     *rpc.Call[[]byte]
	function string
}

func newContractCheck(s registry.Settlement, name, address string) contractCheck {
	c := contractCheck{deployment: s.Deployment, name: name, address: common.HexToAddress(address)}
	c.code = rpc.Code(c.address, rpc.Latest)
	return c
}

func (c contractCheck) callsForZero(function string, data []byte) contractCheck {
	c.function, c.zero = function, rpc.CallContract(rpc.Message{To: c.address, Data: data}, rpc.Latest)
	return c
}

// checkSettlements asks, all in one batch, whether the contracts of each deployment are there and are settlers, and then what the input settlers
// do. tokens are those of the chain.
func (f *finding) checkSettlements(ctx context.Context, p *rpc.Provider, definition *registry.Chain, tokens []registry.Token) {
	settlements := definition.Settlements
	var checks []contractCheck
	for _, s := range settlements {
		checks = append(checks,
			newContractCheck(s, "input settler", s.InputSettler).callsForZero("orderStatus(0)", transfer.OrderStatusCall([32]byte{})),
			newContractCheck(s, "output settler", s.OutputSettler).callsForZero("getFillRecord(0, 0)", fillRecordCall),
			newContractCheck(s, "oracle", s.Oracle).callsForZero("isProven(0, 0, 0, 0)", provenCall))
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
	const contracts = 3
	var there []registry.Settlement
	for n, s := range settlements {
		if code, err := checks[n*contracts].code.Result(); err == nil && len(code) > 0 {
			there = append(there, s)
		}
	}
	f.checkNative(ctx, p, there)
	f.checkSigning(ctx, p, signingTokens(definition, tokens), there)
}

// invalidNativeValue is the error of a settler that takes the native token as input, for an order whose input is not sent along.
var invalidNativeValue = crypto.Keccak256([]byte("InvalidNativeValue(uint256,uint256)"))[:4]

// checkNative asks the settlers that are said to take the native token to open an order of one wei that is not sent along.
func (f *finding) checkNative(ctx context.Context, p *rpc.Provider, settlements []registry.Settlement) {
	for _, s := range settlements {
		if !s.Native {
			continue
		}
		open, err := nativeOpen(f.chain, s)
		if err != nil {
			f.problem("%s: open with the native token: %v", s.Deployment, err)
			continue
		}
		err = ask(ctx, p, rpc.CallContract(open, rpc.Latest))
		answer, ok := errors.AsType[*rpc.Error](err)
		switch {
		case err == nil:
			f.problem("%s: open of the input settler %s takes an order of native tokens that are not paid", s.Deployment, open.To)
		case !errors.Is(err, rpc.ErrReverted) || !ok:
			f.problem("%s: open with the native token: %v", s.Deployment, err)
		case !bytes.HasPrefix(answer.Data, invalidNativeValue):
			f.problem("%s: the input settler %s does not take the native token, so native must be false: %s", s.Deployment, open.To, transfer.RevertReason(answer.Data))
		}
	}
}

// nativeOpen is a call that opens an order of one wei, without the wei.
func nativeOpen(id string, s registry.Settlement) (rpc.Message, error) {
	source, err := caip.ParseChainID(id)
	if err != nil {
		return rpc.Message{}, err
	}
	const user = "0x000000000000000000000000000000000000dEaD"
	now := time.Now()
	intent := probeIntent(s, caip.AccountID{Chain: source, Address: user}, caip.AccountID{Chain: source, Address: registry.NativeAddress}, now)
	tx, err := intent.Tx(transfer.Moment{Now: now})
	if err != nil {
		return rpc.Message{}, err
	}
	return rpc.Message{From: common.HexToAddress(user), To: common.HexToAddress(tx.To), Data: tx.Data}, nil
}

// probeIntent is an intent of one unit of a token, whose order its user has neither the tokens nor an allowance for.
func probeIntent(s registry.Settlement, user, token caip.AccountID, now time.Time) *transfer.Intent {
	leg := transfer.Leg{Account: user, Token: token, Amount: big.NewInt(1)}
	return &transfer.Intent{
		ID: transfer.NewID(now), Type: transfer.Bridge, Status: transfer.Created, Source: leg, Destination: leg, Deadline: now.Add(time.Hour),
		Settlement: transfer.Settlement{
			Scheme: s.Scheme, Deployment: s.Deployment, InputSettler: s.InputSettler, OutputSettler: s.OutputSettler,
			InputOracle: s.Oracle, OutputOracle: s.Oracle, Expires: now.Add(2 * time.Hour),
		},
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
