package rpc

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/evm"
	"intents.internal/core/outbound"
)

// Simulated is what one of several simulated transactions did.
type Simulated struct {
	Succeeded bool
	// Returned is what a transaction that succeeded returned, or the data of a revert, empty for any other failure.
	Returned []byte
	// Gas is what a transaction that succeeded needs at most: its gas before refunds.
	Gas uint64
}

// Simulate simulates transactions one after the other in a block on top of the newest one (eth_simulateV1), and returns a result for
// each. Their gas is free. A node that does not have the method returns an Error.
func Simulate(messages ...Message) *Call[[]Simulated] {
	calls := make([]any, len(messages))
	for n, m := range messages {
		calls[n] = m.params()
	}
	block := map[string]any{"calls": calls}
	return newCall(methodSimulate, func(text jsontext.Value) ([]Simulated, error) {
		var blocks few[struct {
			Calls few[simulatedCall] `json:"calls"`
		}]
		// Nodes may quote the data of a revert, which can be any bytes.
		if err := json.Unmarshal(text, &blocks, jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil, err
		}
		if len(blocks) != 1 || len(blocks[0].Calls) != len(messages) {
			return nil, errors.New("the result is not of one block with the calls that were asked for")
		}
		results := make([]Simulated, len(messages))
		for n, c := range blocks[0].Calls {
			var err error
			if results[n], err = c.simulated(); err != nil {
				return nil, fmt.Errorf("calls[%d]: %w", n, err)
			}
		}
		return results, nil
	}, map[string]any{"blockStateCalls": []any{block}}, Latest)
}

// maxSimulated bounds the transactions of one simulation.
const maxSimulated = 16

// few is a list of at most maxSimulated elements.
type few[T any] []T

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *few[T]) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	*f = nil
	return outbound.DecodeList(decoder, maxSimulated, func() error {
		var element T
		err := json.UnmarshalDecode(decoder, &element)
		*f = append(*f, element)
		return err
	})
}

// simulatedCall is a call in a result of eth_simulateV1.
type simulatedCall struct {
	Status     *evm.Quantity `json:"status"`
	GasUsed    *evm.Quantity `json:"gasUsed"`
	MaxUsedGas evm.Quantity  `json:"maxUsedGas"`
	ReturnData *evm.Data     `json:"returnData"`
	Error      struct {
		Data jsontext.Value `json:"data"`
	} `json:"error"`
}

// simulated takes the data of a revert from error.data (go-ethereum), else from returnData (anvil).
func (c simulatedCall) simulated() (s Simulated, err error) {
	switch {
	case c.Status == nil || *c.Status > 1:
		return s, errors.New("status is neither 0x0 nor 0x1")
	case c.ReturnData == nil:
		return s, errors.New("returnData is missing")
	}
	s = Simulated{Succeeded: *c.Status == 1, Returned: *c.ReturnData}
	if data := revertData(c.Error.Data); !s.Succeeded && len(data) > 0 {
		s.Returned = data
	}
	if s.Succeeded {
		s.Gas, err = c.gas()
	}
	return s, err
}

// maxGas is above the gas of any block.
const maxGas = 1 << 48

// gas is maxUsedGas (go-ethereum since 1.16), else gasUsed and a quarter, because refunds take a fifth at most (EIP-3529).
func (c simulatedCall) gas() (uint64, error) {
	switch {
	case c.GasUsed == nil:
		return 0, errors.New("gasUsed is missing")
	case max(*c.GasUsed, c.MaxUsedGas) > maxGas:
		return 0, errors.New("gasUsed or maxUsedGas is above the gas of any block")
	case c.MaxUsedGas > 0:
		return uint64(c.MaxUsedGas), nil
	}
	return uint64(*c.GasUsed + *c.GasUsed/4), nil
}
