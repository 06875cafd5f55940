package rpctest

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/evm"
)

type filter struct {
	From    string           `json:"fromBlock"`
	To      string           `json:"toBlock"`
	Address []common.Address `json:"address"`
	Topics  [][]common.Hash  `json:"topics"`
}

func (v view) getLogs(params []jsontext.Value) (any, error) {
	f, err := param[filter](params, 0)
	if err != nil {
		return nil, err
	}
	from, _, err := v.number(f.From)
	if err != nil {
		return nil, err
	}
	to, known, err := v.number(f.To)
	switch limit := v.faults.RangeLimit; {
	case err != nil:
		return nil, err
	case from > to:
		return nil, Error{Code: -32602, Message: "invalid block range params"}
	case limit > 0 && to-from >= limit:
		return nil, Error{Code: -32005, Message: fmt.Sprintf("eth_getLogs is limited to a %d range", limit)}
	case !known && v.faults.LagError:
		return nil, Error{Code: -32602, Message: fmt.Sprintf("BlockOutOfRangeError: block height is %d but requested was %d", v.top(), to)}
	case v.faults.EmptyLogs || from > v.top():
		return []logJSON{}, nil
	}
	found := []logJSON{}
	for _, b := range v.blocks[from : min(to, v.top())+1] {
		for _, l := range b.logs {
			if f.matches(l) {
				found = append(found, encodeLog(l))
			}
		}
		if limit := v.faults.ResultLimit; limit > 0 && len(found) > limit {
			return nil, Error{Code: -32005, Message: "query returned more than " + strconv.Itoa(limit) + " results"}
		}
	}
	return found, nil
}

func (f filter) matches(l evm.Log) bool {
	if len(f.Address) > 0 && !slices.Contains(f.Address, l.Address) {
		return false
	}
	if len(f.Topics) > len(l.Topics) {
		return false
	}
	for i, topics := range f.Topics {
		if len(topics) > 0 && !slices.Contains(topics, l.Topics[i]) {
			return false
		}
	}
	return true
}
