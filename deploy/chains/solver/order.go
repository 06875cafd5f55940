package solver

import (
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"intents.internal/deploy/chains/contracts"
)

// order is an order that an input settler has opened.
type order struct {
	contracts.StandardOrder
	id    common.Hash
	block uint64
	// fault is why the event cannot be decoded.
	fault error
	// fill is who filled the order and when, nil until that was read from the destination.
	fill *contracts.SolveParams

	seen, notBefore time.Time
	refusals        int
}

// newOrder decodes an Open event. An order that cannot be decoded has a fault.
func newOrder(id common.Hash, event []byte, block uint64) *order {
	now := time.Now()
	o := &order{id: id, block: block, seen: now, notBefore: now}
	values, err := inputSettlerABI.Events["Open"].Inputs.NonIndexed().Unpack(event)
	if err != nil {
		o.fault = fmt.Errorf("decode the event: %w", err)
		return o
	}
	o.StandardOrder = *abi.ConvertType(values[0], new(contracts.StandardOrder)).(*contracts.StandardOrder) //nolint:forcetypeassert // the type is asked for
	return o
}

// output is the only output of a checked order.
func (o *order) output() contracts.MandateOutput { return o.Outputs[0] }

// destination returns the chain on which an order is filled, or why it is not filled: every member that decides who is paid, and
// whether the solver can claim, must be what the service writes into its orders.
func (f *follower) destination(o *order) (*chain, error) {
	switch {
	case o.fault != nil:
		return nil, o.fault
	case o.OriginChainId.Cmp(f.origin.id) != 0:
		return nil, fmt.Errorf("its origin is the chain %s", o.OriginChainId)
	case len(o.Inputs) != 1 || len(o.Outputs) != 1:
		return nil, errors.New("it does not have one input and one output")
	case len(o.output().CallbackData) > 0 || len(o.output().Context) > 0:
		return nil, errors.New("its output has callback data or a context")
	}
	for _, c := range f.chains {
		if o.output().ChainId.Cmp(c.id) == 0 {
			return c, f.checkAddresses(o, c)
		}
	}
	return nil, fmt.Errorf("its destination, the chain %s, is unknown", o.output().ChainId)
}

func (f *follower) checkAddresses(o *order, destination *chain) error {
	inputOracle, outputOracle := f.origin.Oracle, destination.Oracle
	if destination == f.origin { // the output settler is the oracle of its own chain
		inputOracle, outputOracle = destination.OutputSettler, destination.OutputSettler
	}
	output := o.output()
	switch {
	case output.Settler != contracts.Word(destination.OutputSettler):
		return errors.New("its output settler is unknown")
	case o.InputOracle != inputOracle || output.Oracle != contracts.Word(outputOracle):
		return errors.New("its oracles are unknown")
	case !isAddress(output.Token) || !isAddress(output.Recipient):
		return errors.New("its token or recipient is no address")
	}
	return nil
}

// isAddress reports whether the 12 bytes before an address are zero.
func isAddress(word [32]byte) bool { return [12]byte(word[:12]) == [12]byte{} }

// token returns the zero address for the native token.
func (o *order) token() common.Address { return common.Address(o.Outputs[0].Token[12:]) }

// native reports whether the output is the chain's native token.
func (o *order) native() bool { return o.token() == common.Address{} }
