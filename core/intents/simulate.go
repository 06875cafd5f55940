package intents

import (
	"context"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// Simulate simulates the steps of an intent's transaction, one after the other, and checks their preconditions. A node without
// eth_simulateV1 (go-ethereum since 1.14 and anvil have it) simulates only what needs none of the steps before it.
//
// gas is what all steps need together, nil if one of them fails or is not simulated.
func Simulate(
	ctx context.Context, client *rpc.Client, intent *transfer.Intent, tx *transfer.Tx, stepsOf transfer.StepsOf, now time.Time,
) (checks []transfer.Check, gas *string, err error) {
	calls, err := newPreflight(intent, tx)
	if err != nil {
		return nil, nil, err
	}
	var simulation transfer.Simulation
	err = rpc.Ask(ctx, client, tx.Chain, func(ctx context.Context, p *rpc.Provider) error {
		var units uint64
		simulation, units, err = calls.ask(ctx, p, stepsOf)
		if gas = nil; units > 0 {
			text := strconv.FormatUint(units, 10)
			gas = &text
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return intent.Preflight(tx, simulation, now), gas, nil
}

// preflight is the calls about a transaction.
type preflight struct {
	tx     *transfer.Tx
	native *rpc.Call[*big.Int]
	// balance and allowance are calls of the ERC-20 source token, nil if not needed.
	balance, allowance *rpc.Call[[]byte]
	// code and status are calls about the input settler, nil for a transfer.
	code, status *rpc.Call[[]byte]
}

func newPreflight(intent *transfer.Intent, tx *transfer.Tx) (*preflight, error) {
	from := common.HexToAddress(tx.From)
	q := &preflight{tx: tx}
	contract := func(address string, data []byte) *rpc.Call[[]byte] {
		return rpc.CallContract(rpc.Message{From: from, To: common.HexToAddress(address), Data: data}, rpc.Latest)
	}
	if registry.Native(intent.Source.Token) {
		q.native = rpc.Balance(from, rpc.Latest)
	} else {
		data, err := transfer.BalanceOfCall(tx.From)
		if err != nil {
			return nil, err
		}
		q.balance = contract(intent.Source.Token.Address, data)
	}
	if len(tx.Allowances) > 0 {
		data, err := transfer.AllowanceCall(tx.From, tx.Allowances[0].Spender)
		if err != nil {
			return nil, err
		}
		q.allowance = contract(intent.Source.Token.Address, data)
	}
	if intent.Type != transfer.Transfer {
		q.code = rpc.Code(common.HexToAddress(intent.Settlement.InputSettler), rpc.Latest)
		q.status = contract(intent.Settlement.InputSettler, transfer.OrderStatusCall(intent.OrderID))
	}
	return q, nil
}

// ask returns an error unless the provider answers every call. A revert is an answer. The only step of a transaction without allowances is
// asked in the same batch.
func (q *preflight) ask(ctx context.Context, p *rpc.Provider, stepsOf transfer.StepsOf) (s transfer.Simulation, gas uint64, err error) {
	var requests []rpc.Request
	if q.native != nil {
		requests = append(requests, q.native)
	}
	var contracts []*rpc.Call[[]byte]
	for _, c := range []*rpc.Call[[]byte]{q.balance, q.allowance, q.code, q.status} {
		if c != nil {
			requests, contracts = append(requests, c), append(contracts, c)
		}
	}
	var only []stepCalls
	if q.allowance == nil {
		s.Steps = stepsOf(q.tx, nil)
		only = q.separately(s.Steps)
		requests = append(requests, requestsOf(only)...)
	}
	if err := p.Do(ctx, requests...); err != nil {
		return s, 0, err
	}
	for _, c := range contracts {
		if err := answered(c.Err()); err != nil {
			return s, 0, err
		}
	}
	if err := q.read(&s); err != nil {
		return s, 0, err
	}
	if q.allowance == nil {
		gas, err = sum(only, &s)
		return s, gas, err
	}
	s.Steps = stepsOf(q.tx, s.Allowance)
	gas, err = q.simulate(ctx, p, &s)
	return s, gas, err
}

// read takes what the calls returned.
func (q *preflight) read(s *transfer.Simulation) (err error) {
	if s.Balance = number(q.balance); q.native != nil {
		if s.Balance, err = q.native.Result(); err != nil {
			return err
		}
	}
	s.Allowance = number(q.allowance)
	if q.code != nil {
		readSettler(s, q.code, q.status)
	}
	return nil
}

// readSettler takes what is at the input settler's address.
func readSettler(s *transfer.Simulation, code, status *rpc.Call[[]byte]) {
	contract, _ := code.Result()
	s.SettlerHasCode = len(contract) > 0
	returned, _ := status.Result()
	if status, ok := transfer.ParseOrderStatus(returned); ok {
		s.OrderStatus = &status
	}
}

// simulate simulates the steps one after the other. A node that refuses, because it does not have the method, simulates them separately.
func (q *preflight) simulate(ctx context.Context, p *rpc.Provider, s *transfer.Simulation) (gas uint64, err error) {
	if len(s.Steps) == 1 {
		return q.simulateSeparately(ctx, p, s, 1)
	}
	messages := make([]rpc.Message, len(s.Steps))
	for n, step := range s.Steps {
		messages[n] = q.message(step)
	}
	results, err := rpc.Fetch(ctx, p, rpc.Simulate(messages...))
	if refusal, ok := errors.AsType[*rpc.Error](err); ok && refusal.Unwrap() == nil {
		independent := 1
		if q.tx.Allows(s.Allowance) {
			independent = len(s.Steps)
		}
		return q.simulateSeparately(ctx, p, s, independent)
	}
	if err != nil {
		return 0, err
	}
	for n, r := range results {
		if s.Returned = r.Returned; !r.Succeeded {
			fail(s, n, transfer.RevertReason(r.Returned))
			return 0, nil
		}
		gas += r.Gas
	}
	return gas, nil
}

// simulateSeparately simulates so many of the steps, each on the newest block.
func (q *preflight) simulateSeparately(ctx context.Context, p *rpc.Provider, s *transfer.Simulation, independent int) (gas uint64, err error) {
	calls := q.separately(s.Steps[:independent])
	if err := p.Do(ctx, requestsOf(calls)...); err != nil {
		return 0, err
	}
	gas, err = sum(calls, s)
	if independent < len(s.Steps) {
		s.Unknown, gas = true, 0
	}
	return gas, err
}

// stepCalls simulate a step on the newest block and estimate its gas.
type stepCalls struct {
	returned *rpc.Call[[]byte]
	gas      *rpc.Call[uint64]
}

func (q *preflight) separately(steps []transfer.Step) []stepCalls {
	calls := make([]stepCalls, len(steps))
	for n, step := range steps {
		message := q.message(step)
		calls[n] = stepCalls{rpc.CallContract(message, rpc.Latest), rpc.EstimateGas(message)}
	}
	return calls
}

func requestsOf(calls []stepCalls) []rpc.Request {
	requests := make([]rpc.Request, 0, 2*len(calls))
	for _, c := range calls {
		requests = append(requests, c.returned, c.gas)
	}
	return requests
}

// sum adds the gas of the steps up, 0 if one fails, and takes what the last one returned.
func sum(calls []stepCalls, s *transfer.Simulation) (gas uint64, err error) {
	for n, c := range calls {
		units, gasErr := c.gas.Result()
		if s.Returned, err = c.returned.Result(); err == nil {
			err = gasErr
		}
		failure, err := failureOf(err)
		if err != nil {
			return 0, err
		}
		if failure != "" {
			fail(s, n, failure)
			return 0, nil
		}
		gas += units
	}
	return gas, nil
}

// fail records that a step fails, by a sentence about a transaction.
func fail(s *transfer.Simulation, step int, failure string) {
	s.Failed = s.Steps[step].Name
	s.Failure = failure
	if rest, ok := strings.CutPrefix(failure, "The transaction "); ok {
		s.Failure = "The " + string(s.Failed) + " " + rest
	}
}

func (q *preflight) message(step transfer.Step) rpc.Message {
	return rpc.Message{From: common.HexToAddress(q.tx.From), To: common.HexToAddress(step.To), Value: step.Value, Data: step.Data}
}

// answered returns nil for a call that a contract reverted, because a revert is not an error of the node.
func answered(err error) error {
	if errors.Is(err, rpc.ErrReverted) {
		return nil
	}
	return err
}

// number returns the number that a contract returned, nil if there was no call or no number.
func number(c *rpc.Call[[]byte]) *big.Int {
	if c == nil {
		return nil
	}
	returned, _ := c.Result()
	return word(returned)
}

// failureOf returns the sentence for a failed simulation. It returns any other error as err, including errors of JSON-RPC itself.
func failureOf(err error) (string, error) {
	if err == nil {
		return "", nil
	}
	answer, ok := errors.AsType[*rpc.Error](err)
	switch {
	case ok && errors.Is(err, rpc.ErrReverted):
		return transfer.RevertReason(answer.Data), nil
	case ok && answer.Unwrap() == nil && (answer.Code < -32768 || answer.Code > -32600):
		return transfer.NodeRefusal(answer.Message), nil
	default:
		return "", err
	}
}
