package rpctest

import (
	"errors"
	"math/big"
	"sort"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// view is the chain as a node with faults sees it. The chain is locked for reading.
type view struct {
	*Chain
	faults Faults
}

var (
	errParams       = Error{Code: -32602, Message: "invalid params"}
	errNoBlock      = Error{Code: -32000, Message: "header not found"}
	errMissingState = Error{Code: -32000, Message: "missing trie node 00 (path ) state 0x00 is not available, not found"}
)

func toError(err error) *Error {
	if revert, ok := errors.AsType[Revert](err); ok {
		return &Error{Code: 3, Message: revert.Error(), Data: hexutil.Encode(revert)}
	}
	if e, ok := errors.AsType[Error](err); ok {
		return &e
	}
	return &Error{Code: -32603, Message: err.Error()}
}

func (v view) call(method string, params []jsontext.Value) (any, error) {
	if e, ok := v.faults.Errors[method]; ok {
		return nil, e
	}
	switch method {
	case "eth_chainId":
		if v.faults.ChainID != 0 {
			return hexutil.Uint64(v.faults.ChainID), nil
		}
		return hexutil.Uint64(v.id), nil
	case "eth_blockNumber":
		return hexutil.Uint64(v.top()), nil
	case "eth_getBlockByNumber":
		return v.getBlock(params)
	case "eth_getLogs":
		return v.getLogs(params)
	case "eth_getTransactionReceipt":
		return v.getReceipt(params)
	case "eth_getTransactionByHash":
		return v.getTransaction(params)
	case "eth_getTransactionCount", "eth_getCode", "eth_getBalance":
		return v.getAccount(method, params)
	case "eth_call", "eth_estimateGas":
		return v.simulate(method, params)
	case "eth_simulateV1":
		return v.simulateBlocks(params)
	default:
		return nil, Error{Code: -32601, Message: "the method " + method + " does not exist/is not available"}
	}
}

// top is the number of the node's head.
func (v view) top() uint64 {
	return uint64(max(0, len(v.blocks)-1-v.faults.Lag))
}

// number is the number of the block that a text names; ok is false for one that the node does not have.
func (v view) number(id string) (number uint64, ok bool, err error) {
	switch id {
	case "latest", "pending":
		if v.faults.Balanced {
			return uint64(len(v.blocks) - 1), true, nil //nolint:gosec // G115: there is block 0
		}
		return v.top(), true, nil
	case "earliest":
		return 0, true, nil
	case "safe", "finalized":
		depth, ok := v.tags[id]
		if lie, lies := v.faults.Tags[id]; lies {
			depth = lie
		}
		if !ok {
			return 0, false, Error{Code: -39001, Message: "Unknown block"}
		}
		return v.top() - min(depth, v.top()), true, nil
	}
	number, err = hexutil.DecodeUint64(id)
	if err != nil {
		return 0, false, errParams
	}
	return number, number <= v.top(), nil
}

func (v view) getBlock(params []jsontext.Value) (any, error) {
	id, err := param[string](params, 0)
	if err != nil {
		return nil, err
	}
	full, err := param[bool](params, 1)
	if err != nil {
		return nil, err
	}
	number, ok, err := v.number(id)
	if err != nil || !ok {
		return nil, err
	}
	if number < v.faults.PrunedBelow {
		return nil, Error{Code: 4444, Message: "pruned history unavailable"}
	}
	return encodeBlock(v.blocks[number], full), nil
}

// find is the place of a transaction that the node has in a block.
func (v view) find(params []jsontext.Value) (hash common.Hash, p place, ok bool, err error) {
	hash, err = param[common.Hash](params, 0)
	if err != nil {
		return hash, p, false, err
	}
	p, ok = v.places[hash]
	return hash, p, ok && p.block.Number <= v.top() && !v.faults.Unknown[hash], nil
}

func (v view) getReceipt(params []jsontext.Value) (any, error) {
	hash, p, ok, err := v.find(params)
	if err != nil || !ok {
		return nil, err
	}
	if v.faults.Garbled[hash] {
		return "?", nil
	}
	receipt := encodeReceipt(p)
	if lie := v.faults.Receipts[hash]; lie != nil {
		lie(receipt)
	}
	return receipt, nil
}

func (v view) getTransaction(params []jsontext.Value) (any, error) {
	hash, p, ok, err := v.find(params)
	if err != nil || v.faults.Unknown[hash] {
		return nil, err
	}
	if v.faults.Garbled[hash] {
		return "?", nil
	}
	if ok {
		return encodeTransaction(hash, p.block.txs[p.index], p.block), nil
	}
	tx, pending := v.pool[hash]
	if !pending {
		return nil, nil
	}
	return encodeTransaction(hash, tx, nil), nil
}

// at is the number of the block whose state is asked for.
func (v view) at(id string) (uint64, error) {
	number, ok, err := v.number(id)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, errNoBlock
	case v.faults.MissingState && number < v.top(), v.faults.StatesKept > 0 && number+v.faults.StatesKept < v.top():
		return 0, errMissingState
	}
	return number, nil
}

func (v view) getAccount(method string, params []jsontext.Value) (any, error) {
	address, err := param[common.Address](params, 0)
	if err != nil {
		return nil, err
	}
	id, err := param[string](params, 1)
	if err != nil {
		return nil, err
	}
	number, err := v.at(id)
	if err != nil {
		return nil, err
	}
	if method == "eth_getCode" {
		return hexutil.Bytes(v.code[address]), nil
	}
	if method == "eth_getBalance" {
		if balance := v.balances[address]; balance != nil {
			return (*hexutil.Big)(balance), nil
		}
		return (*hexutil.Big)(new(big.Int)), nil
	}
	mined := v.nonces[address]
	i := sort.Search(len(mined), func(i int) bool { return mined[i].block > number })
	if i == 0 {
		return hexutil.Uint64(0), nil
	}
	return hexutil.Uint64(mined[i-1].next), nil
}

// message is a simulated transaction in a request.
type message struct {
	From  common.Address `json:"from"`
	To    common.Address `json:"to"`
	Value *hexutil.Big   `json:"value"`
	Data  hexutil.Bytes  `json:"data"`
}

func (v view) toCall(m message, number uint64) Call {
	call := Call{From: m.From, To: m.To, Value: new(big.Int), Data: m.Data, Block: number, Time: v.blocks[number].Time}
	if m.Value != nil {
		call.Value = (*big.Int)(m.Value)
	}
	return call
}

// stateOf is the block that a parameter names, the newest where it is left out.
func (v view) stateOf(params []jsontext.Value, i int) (uint64, error) {
	id := "latest"
	if len(params) > i {
		var err error
		if id, err = param[string](params, i); err != nil {
			return 0, err
		}
	}
	return v.at(id)
}

func (v view) simulate(method string, params []jsontext.Value) (any, error) {
	m, err := param[message](params, 0)
	if err != nil {
		return nil, err
	}
	number, err := v.stateOf(params, 1)
	if err != nil {
		return nil, err
	}
	call := v.toCall(m, number)
	if method == "eth_estimateGas" {
		gas, err := v.gas(call)
		return hexutil.Uint64(gas), err
	}
	returned, err := v.execute(call)
	return hexutil.Bytes(returned), err
}

func (v view) execute(call Call) ([]byte, error) {
	if returned, ok := v.answers[question{call.To, string(call.Data)}]; ok {
		return returned, nil
	}
	var selector Selector
	copy(selector[:], call.Data)
	if f := v.functions[function{call.To, selector}]; f != nil {
		return f(call)
	}
	return nil, nil
}

// simulatedCall is the result of a call of eth_simulateV1, as go-ethereum writes it.
type simulatedCall struct {
	ReturnData hexutil.Bytes  `json:"returnData"`
	Logs       []logJSON      `json:"logs"`
	GasUsed    hexutil.Uint64 `json:"gasUsed"`
	MaxUsedGas hexutil.Uint64 `json:"maxUsedGas"`
	Status     hexutil.Uint64 `json:"status"`
	Error      *Error         `json:"error,omitzero"`
}

type simulatedBlock struct {
	blockJSON
	Calls []simulatedCall `json:"calls"`
}

// simulateBlocks answers eth_simulateV1 for one block of calls.
func (v view) simulateBlocks(params []jsontext.Value) (any, error) {
	p, err := param[struct {
		BlockStateCalls []struct {
			Calls []message `json:"calls"`
		} `json:"blockStateCalls"`
	}](params, 0)
	if err != nil || len(p.BlockStateCalls) != 1 {
		return nil, errParams
	}
	number, err := v.stateOf(params, 1)
	if err != nil {
		return nil, err
	}
	result := simulatedBlock{blockJSON: encodeBlock(v.blocks[number], false)}
	var before []Call
	for _, m := range p.BlockStateCalls[0].Calls {
		call := v.toCall(m, number)
		call.Before = before
		returned, err := v.execute(call)
		gas, gasErr := v.gas(call)
		simulated := simulatedCall{ReturnData: returned, Logs: []logJSON{}, GasUsed: hexutil.Uint64(gas), MaxUsedGas: hexutil.Uint64(gas), Status: 1}
		if err = errors.Join(err, gasErr); err != nil {
			simulated.ReturnData, simulated.Status, simulated.Error = nil, 0, toError(err)
		}
		result.Calls = append(result.Calls, simulated)
		before = append(before, call)
	}
	return []simulatedBlock{result}, nil
}

func param[T any](params []jsontext.Value, i int) (value T, err error) {
	if i >= len(params) || json.Unmarshal(params[i], &value) != nil {
		return value, errParams
	}
	return value, nil
}
