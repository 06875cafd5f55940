package intents

import (
	"context"
	"errors"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/pkg/wire"
)

// relayer is an account that owns nothing, by which a signed intent's transaction is simulated: any account may send it.
var relayer = common.HexToAddress("0x00000000000000000000000000000000000052e1")

// preflightSigned simulates the transaction of a signed intent, or what can be known before it is signed.
func (s *Service) preflightSigned(ctx context.Context, intent *transfer.Intent, at transfer.Moment) (Preflight, error) {
	signed, err := s.Store.Signature(ctx, intent.AccountID, intent.ID)
	if err != nil {
		return Preflight{}, err
	}
	allowed := intent.Relayable(at)
	if signed == nil {
		allowed = intent.Sendable(at)
	}
	switch {
	case errors.Is(allowed, transfer.ErrNotSendable):
		return Preflight{}, &StatusError{intent.Status, allowed}
	case allowed != nil:
		return Preflight{}, allowed
	}
	order, err := intent.Order()
	if err != nil {
		return Preflight{}, err
	}
	q, err := newSignedPreflight(intent, order, at, signed)
	if err != nil {
		return Preflight{}, err
	}
	var simulation transfer.SignedSimulation
	var gas *string
	err = rpc.Ask(ctx, s.Chains, intent.Source.Account.Chain, func(ctx context.Context, p *rpc.Provider) (err error) {
		simulation, gas, err = q.ask(ctx, p)
		return err
	})
	if err != nil {
		return Preflight{}, err
	}
	if signed != nil {
		record, err := intent.SignatureAt(order, at)
		if err != nil {
			return Preflight{}, err
		}
		if _, err = s.verify(ctx, intent, at, record.Digest, signed); err != nil && !errors.Is(err, ErrSignature) {
			return Preflight{}, err
		}
		simulation.Refused = err != nil
	}
	return Preflight{intent.PreflightSigned(order, simulation, at.Now), gas}, nil
}

// signedPreflight is the calls about a signed intent. Those that it does not need are nil.
type signedPreflight struct {
	balance, allowance, code, status, bitmap, state, authorization, relay *rpc.Call[[]byte]
	gas                                                                   *rpc.Call[uint64]
	steps                                                                 []transfer.Step
}

func newSignedPreflight(intent *transfer.Intent, order *transfer.Order, at transfer.Moment, signed []byte) (*signedPreflight, error) {
	user, token := intent.Source.Account.Address, common.HexToAddress(intent.Source.Token.Address)
	q := &signedPreflight{}
	var failures []error
	call := func(to common.Address, data []byte, err error) *rpc.Call[[]byte] {
		failures = append(failures, err)
		return rpc.CallContract(rpc.Message{From: relayer, To: to, Data: data}, rpc.Latest)
	}
	data, err := transfer.BalanceOfCall(user)
	q.balance = call(token, data, err)
	if intent.HasOrder() {
		settler := common.HexToAddress(intent.Settlement.InputSettler)
		q.code, q.status = rpc.Code(settler, rpc.Latest), call(settler, transfer.OrderStatusCall(intent.OrderID), nil)
	}
	if intent.Signing.Scheme == wire.Permit2 {
		data, err = transfer.AllowanceCall(user, transfer.Permit2Address)
		q.allowance = call(token, data, err)
		data, err = order.NonceBitmapCall()
		q.bitmap = call(common.HexToAddress(transfer.Permit2Address), data, err)
	} else {
		state, from, move, err := intent.AuthorizationCalls(at, signed)
		q.state = call(token, state, err)
		if signed != nil && from != "" { // the relay of a transfer is the token's own call
			q.authorization = rpc.CallContract(rpc.Message{From: common.HexToAddress(from), To: token, Data: move.Data}, rpc.Latest)
		}
	}
	if signed != nil {
		tx, err := intent.RelayTx(order, at, signed)
		if err != nil {
			return nil, err
		}
		message := rpc.Message{From: relayer, To: common.HexToAddress(tx.To), Data: tx.Data}
		q.relay, q.gas = rpc.CallContract(message, rpc.Latest), rpc.EstimateGas(message)
		q.steps = []transfer.Step{{Name: transfer.StepTransaction, Call: tx.Call}}
	}
	return q, errors.Join(failures...)
}

// ask asks one provider all calls in one batch. A revert is an answer.
func (q *signedPreflight) ask(ctx context.Context, p *rpc.Provider) (s transfer.SignedSimulation, gas *string, err error) {
	var requests []rpc.Request
	contracts := []*rpc.Call[[]byte]{q.balance, q.allowance, q.code, q.status, q.bitmap, q.state}
	for _, c := range append(contracts, q.authorization, q.relay) {
		if c != nil {
			requests = append(requests, c)
		}
	}
	if q.gas != nil {
		requests = append(requests, q.gas)
	}
	if err := p.Do(ctx, requests...); err != nil {
		return s, nil, err
	}
	for _, c := range contracts {
		if c != nil {
			err = errors.Join(err, answered(c.Err()))
		}
	}
	if err != nil {
		return s, nil, err
	}
	s.Balance, s.Allowance, s.Bitmap, s.AuthorizationUsed = number(q.balance), number(q.allowance), number(q.bitmap), number(q.state)
	if q.code != nil {
		readSettler(&s.Simulation, q.code, q.status)
	}
	if s.Signed = q.relay != nil; !s.Signed {
		return s, nil, nil
	}
	s.Steps = q.steps
	units, err := sum([]stepCalls{{q.relay, q.gas}}, &s.Simulation)
	if err != nil {
		return s, nil, err
	}
	s.AuthorizationFailure = s.Failure
	if q.authorization != nil {
		if s.AuthorizationFailure, err = failureOf(q.authorization.Err()); err != nil {
			return s, nil, err
		}
	}
	if s.Failure == "" {
		text := strconv.FormatUint(units, 10)
		gas = &text
	}
	return s, gas, nil
}
