package rpc_test

import (
	"errors"
	"fmt"
	"testing"

	"intents.internal/core/rpc"
)

func TestError_Kinds(t *testing.T) {
	t.Parallel()
	logs := func() rpc.Request { return rpc.Logs(rpc.LogFilter{From: 1, To: 100}) }
	oneBlock := func() rpc.Request { return rpc.Logs(rpc.LogFilter{From: 1, To: 1}) }
	block := func() rpc.Request { return rpc.BlockByNumber(rpc.Latest) }
	call := func() rpc.Request { return rpc.CallContract(rpc.Message{}, rpc.Latest) }
	tests := []struct {
		request func() rpc.Request
		code    int
		message string
		want    error
	}{
		{logs, -32005, "query returned more than 10000 results", rpc.ErrRange},
		{logs, -32005, "query returned more than 10000 results. Try with this block range [0xCB3D, 0x7B737].", rpc.ErrRange},
		{logs, -32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size", rpc.ErrRange},
		{logs, -32600, "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range.", rpc.ErrRange},
		{logs, -32614, "eth_getLogs is limited to a 10,000 range", rpc.ErrRange},
		{logs, -32000, "eth_getLogs and eth_newFilter are limited to a 10,000 blocks range", rpc.ErrRange},
		{logs, -32602, "eth_getLogs is limited to 0 - 50 blocks range", rpc.ErrRange},
		{logs, -32600, "block range is too wide", rpc.ErrRange},
		{logs, -32000, "block range is too wide (maximum 1024)", rpc.ErrRange},
		{logs, 35, "ranges over 10000 blocks are not supported on freetier", rpc.ErrRange},
		{logs, -32701, "exceed maximum block range: 50000", rpc.ErrRange},
		{logs, -32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800", rpc.ErrRange},
		{logs, -32602, "query exceeds max block range 100000", rpc.ErrRange},
		{logs, -32602, "query exceeds max results 20000, retry with the range 1-2", rpc.ErrRange},
		{logs, -32602, "range 1000000 exceeds limit of 10000", rpc.ErrRange},
		{logs, -32602, "query block range exceeds server limit, narrow your filter: 5", rpc.ErrRange},
		{logs, -32000, "requested too many blocks from 0 to 16777216, maximum is set to 2048", rpc.ErrRange},
		{logs, -32000, "too wide blocks range, the limit is 100", rpc.ErrRange},
		{logs, -32000, "logs matched by query exceeds limit of 10000", rpc.ErrRange},
		{logs, -32012, "requested range too large", rpc.ErrRange},
		{logs, -32005, "Log response size exceeded. Maximum allowed number of requested blocks is 1000", rpc.ErrRange},
		{logs, -32000, "maximum [from, to] blocks distance: 10000", rpc.ErrRange},
		{logs, -32000, "query timeout exceeded", rpc.ErrRange},
		{logs, -32000, "GetLogs query must be smaller than size 1024", rpc.ErrRange},
		{logs, -32603, "something of a spelling that nobody knows", rpc.ErrRange},
		{logs, -32601, "the method eth_getLogs does not exist", nil},
		{oneBlock, -32603, "something of a spelling that nobody knows", nil},
		{logs, -32005, "limit exceeded", rpc.ErrRate},
		{logs, -32005, "rate limit exceeded: try a smaller range", rpc.ErrRate},
		{logs, 429, "Your app has exceeded its compute units per second capacity.", rpc.ErrRate},
		{block, -32005, "daily request count exceeded, request rate limited", rpc.ErrRate},
		{block, -32007, "50/second request limit reached", rpc.ErrRate},
		{block, -32029, "Too Many Requests", rpc.ErrRate},
		{block, -32097, "rate limit exceeded", rpc.ErrRate},
		{block, -32000, "project has exceeded the quota", rpc.ErrRate},
		{logs, -32602, "BlockOutOfRangeError: block height is 5 but requested was 10", rpc.ErrMissing},
		{logs, -32602, "block range extends beyond current head block", rpc.ErrMissing},
		{call, -32000, "header not found", rpc.ErrMissing},
		{call, -32000, "missing trie node 0a (path ) state 0x00 is not available, not found", rpc.ErrMissing},
		{call, -32000, "historical state is not available", rpc.ErrMissing},
		{call, -32000, "required historical state unavailable (reexec=128)", rpc.ErrMissing},
		{block, -39001, "Unknown block", rpc.ErrMissing},
		{block, -32000, "finalized block not found", rpc.ErrMissing},
		{block, 4444, "pruned history unavailable", rpc.ErrMissing},
		{call, 3, "execution reverted: rate limit, block range", rpc.ErrReverted},
		{call, -32015, "VM execution error.", nil},
		{call, -32000, "gas required exceeds allowance (0)", nil},
		{call, -32000, "block gas limit exceeded", nil},
		{block, -32601, "the method eth_x does not exist/is not available", nil},
		{block, -32602, "invalid argument 0: block range", nil},
	}
	for _, test := range tests {
		provider := answering(t, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":$1,"error":{"code":%d,"message":%q}}`, test.code, test.message), nil)
		request := test.request()
		if err := provider.Do(t.Context(), request); err != nil {
			t.Errorf("%s: of the whole request: %v", test.message, err)
		}
		err := request.Err()
		node, ok := errors.AsType[*rpc.Error](err)
		if !ok || node.Message != test.message || node.Code != int64(test.code) {
			t.Errorf("%s: got %v", test.message, err)
		}
		for _, kind := range []error{rpc.ErrRange, rpc.ErrRate, rpc.ErrMissing, rpc.ErrReverted, rpc.ErrTransport, rpc.ErrMalformed} {
			if want := errors.Is(test.want, kind); errors.Is(err, kind) != want {
				t.Errorf("%d %s: whether it is %q must be %t", test.code, test.message, kind, want)
			}
		}
	}
}

func TestError_RevertData(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`"0x756688fe"`, `{"data":"0x756688fe","txHash":"0x"}`, `"Reverted 0x756688fe"`} {
		provider := answering(t, 200, `{"jsonrpc":"2.0","id":$1,"error":{"code":3,"message":"execution reverted","data":`+data+`}}`, nil)
		call := rpc.CallContract(rpc.Message{}, rpc.Latest)
		if err := provider.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		_, err := call.Result()
		if node, ok := errors.AsType[*rpc.Error](err); !ok || string(node.Data) != "\x75\x66\x88\xfe" {
			t.Errorf("%s: got %v", data, err)
		}
	}
}
