package rpc_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
)

// allocated is how many bytes a function allocates. Tests that use it do not run in parallel.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Small elements, of which a compressed body holds millions, need no more memory than the body.
//
//nolint:paralleltest // it counts what the process allocates
func TestProvider_SmallElements(t *testing.T) {
	const size = 8 << 20
	list := func(element string) string {
		return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
	}
	block := func(transactions string) string {
		h := common.Hash{}.Hex()
		return fmt.Sprintf(`{"number":"0x1","hash":"%s","parentHash":"%[1]s","timestamp":"0x1","transactions":%s}`, h, transactions)
	}
	result := func(text string) string { return `{"jsonrpc":"2.0","id":$1,"result":` + text + `}` }
	one, two := []rpc.Request{rpc.BlockByNumber(rpc.Number(1))}, []rpc.Request{rpc.ChainID(), rpc.ChainID()}
	for name, c := range map[string]struct {
		calls []rpc.Request
		body  string
	}{
		"responses":               {two, list("{}")},
		"responses with the id":   {two, strings.Replace(list(`{"id":$1,"result":"0x1"}`), "$1", "0", 1)},
		"transactions of a block": {one, result(block(list("0")))},
		"hashes that are null":    {one, result(block(list("null")))},
		"contents of a block":     {[]rpc.Request{rpc.BlockTransactions(1, func(evm.Transaction) bool { return true })}, result(block(list("{}")))},
		"logs":                    {[]rpc.Request{rpc.Logs(rpc.LogFilter{})}, result(list("{}"))},
		"logs that are null":      {[]rpc.Request{rpc.Logs(rpc.LogFilter{})}, result(list("null"))},
		"a receipt's logs":        {[]rpc.Request{receipt(common.Hash{})}, result(`{"logs":` + list("{}") + `}`)},
		"a log's topics":          {[]rpc.Request{rpc.Logs(rpc.LogFilter{})}, result(`[{"topics":` + list("null") + `}]`)},
		"simulated blocks":        {[]rpc.Request{rpc.Simulate(rpc.Message{})}, result(list("{}"))},
		"simulated calls":         {[]rpc.Request{rpc.Simulate(rpc.Message{})}, result(`[{"calls":` + list("{}") + `}]`)},
	} {
		parts := strings.SplitN(c.body, "$1", 2)
		var packed [2][]byte // the members of a gzip stream can be written one after the other
		for i, part := range parts {
			var buffer bytes.Buffer
			w := gzip.NewWriter(&buffer)
			_, _ = w.Write([]byte(part))
			_ = w.Close()
			packed[i] = buffer.Bytes()
		}
		p := handled(t, func(w http.ResponseWriter, body string) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed[0])
			if len(parts) > 1 {
				z := gzip.NewWriter(w)
				_, _ = z.Write([]byte(ids.FindStringSubmatch(body)[1]))
				_ = z.Close()
			}
			_, _ = w.Write(packed[1])
		})
		if got := allocated(func() { _ = p.Do(t.Context(), c.calls...) }); got > 12*size {
			t.Errorf("%s: %d MB are allocated for a body of %d MB", name, got>>20, size>>20)
		}
	}
}
