package rpctest

import (
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/go-json-experiment/json"
)

// Result is what a call returns, as decoded JSON: map[string]any, []any, string, bool, float64 or nil.
type Result = any

// Lie changes what a call of a method returns. It is called for each call, so that it can lie in one of them.
type Lie func(method string, result Result) Result

// LieIn changes one member of the objects that a method returns: of the object itself, or of each in a list.
func LieIn(method, member string, change func(value any) any) Lie {
	return func(called string, result Result) Result {
		if called != method {
			return result
		}
		objects, isList := result.([]any)
		if !isList {
			objects = []any{result}
		}
		for _, o := range objects {
			if object, ok := o.(map[string]any); ok {
				object[member] = change(object[member])
			}
		}
		return result
	}
}

// Duplicate returns each log twice, as a load balancer does that joins overlapping ranges.
func Duplicate(method string, result Result) Result {
	if logs, ok := result.([]any); ok && method == "eth_getLogs" {
		return slices.Concat(logs, logs)
	}
	return result
}

// Renumber counts seven more logs at the beginning of each block, as nodes do that also number those of the chain's own transactions.
func Renumber(method string, result Result) Result {
	logs, _ := result.([]any)
	if receipt, ok := result.(map[string]any); ok && method == "eth_getTransactionReceipt" {
		logs, _ = receipt["logs"].([]any)
	} else if method != "eth_getLogs" {
		return result
	}
	for _, l := range logs {
		log, _ := l.(map[string]any)
		index, _ := log["logIndex"].(string)
		log["logIndex"] = hexutil.EncodeUint64(hexutil.MustDecodeUint64(index) + 7)
	}
	return result
}

// lied is the result of a call after the node's lie.
func (f Faults) lied(method string, result any) any {
	if f.Lie == nil {
		return result
	}
	text, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	var decoded Result
	if err := json.Unmarshal(text, &decoded); err != nil {
		panic(err)
	}
	return f.Lie(method, decoded)
}
