package onchain

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/token"
	"intents.internal/core/intent/transfer"
)

// Preflight simulates an intent's transaction and checks its preconditions. Where an allowance is missing, the transaction is simulated
// after the calls that grant it, if the node can (eth_simulateV1: go-ethereum since 1.14, anvil).
//
// gas is nil if the transaction alone would fail now, as it does before its allowance is granted: a wallet that sends the calls one after
// the other estimates it itself then, and no node estimates the gas of a transaction after others.
func Preflight(ctx context.Context, client *rpc.Client, intent *transfer.Intent, tx *transfer.Tx, now time.Time) (checks []transfer.Check, gas *string, err error) {
	calls, err := newPreflight(intent, tx)
	if err != nil {
		return nil, nil, err
	}
	var simulation transfer.Simulation
	err = askNodes(ctx, client, tx.Chain, func(ctx context.Context, p *rpc.Provider) error {
		simulation, gas, err = calls.ask(ctx, p)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return intent.Preflight(tx, simulation, now), gas, nil
}

// preflight is one batch of calls about a transaction.
type preflight struct {
	tx     *transfer.Tx
	native *rpc.Call[*big.Int]
	// balance and allowance are calls of the ERC-20 source token, nil if not needed.
	balance, allowance *rpc.Call[[]byte]
	// code and status are calls about the input settler, nil for a transfer.
	code, status *rpc.Call[[]byte]
	simulated    *rpc.Call[[]byte]
	gas          *rpc.Call[uint64]
}

func newPreflight(intent *transfer.Intent, tx *transfer.Tx) (*preflight, error) {
	from := common.HexToAddress(tx.From)
	message := rpc.Message{From: from, To: common.HexToAddress(tx.To), Value: tx.Value, Data: tx.Data}
	q := &preflight{tx: tx, simulated: rpc.CallContract(message, rpc.Latest), gas: rpc.EstimateGas(message)}
	contract := func(address string, data []byte) *rpc.Call[[]byte] {
		return rpc.CallContract(rpc.Message{From: from, To: common.HexToAddress(address), Data: data}, rpc.Latest)
	}
	if token.Native(intent.Source.Token) {
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

// ask returns an error unless the provider answers every call. A revert is an answer.
func (q *preflight) ask(ctx context.Context, p *rpc.Provider) (s transfer.Simulation, gas *string, err error) {
	requests := []rpc.Request{q.simulated, q.gas}
	if q.native != nil {
		requests = append(requests, q.native)
	}
	var contracts []*rpc.Call[[]byte]
	for _, c := range []*rpc.Call[[]byte]{q.balance, q.allowance, q.code, q.status} {
		if c != nil {
			requests, contracts = append(requests, c), append(contracts, c)
		}
	}
	if err := p.Do(ctx, requests...); err != nil {
		return s, nil, err
	}
	for _, c := range contracts {
		if err := answered(c.Err()); err != nil {
			return s, nil, err
		}
	}
	if q.native != nil {
		if s.Balance, err = q.native.Result(); err != nil {
			return s, nil, err
		}
	} else {
		s.Balance = number(q.balance)
	}
	s.Allowance = number(q.allowance)
	if q.code != nil {
		code, _ := q.code.Result()
		s.SettlerHasCode = len(code) > 0
		returned, _ := q.status.Result()
		if status, ok := transfer.ParseOrderStatus(returned); ok {
			s.OrderStatus = &status
		}
	}
	units, gasErr := q.gas.Result()
	if s.Returned, err = q.simulated.Result(); err == nil {
		err = gasErr
	}
	if s.Failure, err = failureOf(err); err != nil {
		return s, nil, err
	}
	if s.Failure == "" {
		text := strconv.FormatUint(units, 10)
		gas = &text
	}
	return s, gas, q.simulateApproved(ctx, p, &s)
}

// simulateApproved simulates the transaction after the calls that grant its allowance, if that is too small: first its reset, if one that
// is not 0 stands. A node that refuses, because it does not have the method, changes nothing.
func (q *preflight) simulateApproved(ctx context.Context, p *rpc.Provider, s *transfer.Simulation) error {
	if len(q.tx.Allowances) == 0 || s.Allowance == nil || s.Allowance.Cmp(q.tx.Allowances[0].Amount) >= 0 {
		return nil
	}
	allowance := q.tx.Allowances[0]
	steps := []step{{"The approval", allowance.Approve}, {"The transaction", q.tx.Call}}
	if s.Allowance.Sign() > 0 {
		steps = slices.Insert(steps, 0, step{"The reset of the allowance", allowance.Reset})
	}
	messages := make([]rpc.Message, len(steps))
	for n, c := range steps {
		messages[n] = rpc.Message{From: common.HexToAddress(q.tx.From), To: common.HexToAddress(c.To), Value: c.Value, Data: c.Data}
	}
	results, err := rpc.Fetch(ctx, p, rpc.Simulate(messages...))
	if refusal, ok := errors.AsType[*rpc.Error](err); ok && refusal.Unwrap() == nil {
		return nil
	}
	if err != nil {
		return err
	}
	s.Approved, s.Failure = true, ""
	for n, r := range results {
		if s.Returned = r.Returned; !r.Succeeded {
			s.Failure = steps[n].name + strings.TrimPrefix(transfer.RevertReason(r.Returned), "The transaction")
			return nil
		}
	}
	return nil
}

// step is one of the simulated calls, with how a sentence about it begins.
type step struct {
	name string
	transfer.Call
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
	n, _ := word(returned)
	return n
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
