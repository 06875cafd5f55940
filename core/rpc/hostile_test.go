package rpc_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/rpc"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

// The secrets of the URLs in these tests.
const (
	secretPath  = "p4th-s3cret"
	secretQuery = "qu3ry-s3cret"
	secretUser  = "us3r-name"
	secretWord  = "w0rd-s3cret"
)

var ids = regexp.MustCompile(`"id":(\d+)`)

// answering is a provider of chain 1 whose node answers everything but eth_chainId so. $1, $2 are the ids of the calls.
func answering(t *testing.T, status int, answer string, registry prometheus.Registerer) *rpc.Provider {
	t.Helper()
	return observed(t, func(w http.ResponseWriter, body string) {
		for i, id := range ids.FindAllStringSubmatch(body, -1) {
			answer = strings.ReplaceAll(answer, fmt.Sprintf("$%d", i+1), id[1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}, registry)
}

func handled(t *testing.T, handle func(w http.ResponseWriter, body string)) *rpc.Provider {
	t.Helper()
	return observed(t, handle, nil)
}

// observed is handled with metrics.
func observed(t *testing.T, handle func(w http.ResponseWriter, body string), registry prometheus.Registerer) *rpc.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "eth_chainId") {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x1"}`, ids.FindStringSubmatch(string(body))[1])
			return
		}
		handle(w, string(body))
	}))
	t.Cleanup(server.Close)
	return provider(t, server.URL, rpc.Options{Registry: registry})
}

func provider(t *testing.T, server string, options rpc.Options) *rpc.Provider {
	t.Helper()
	address := strings.Replace(server, "http://", "http://"+secretUser+":"+secretWord+"@", 1) + "/v3/" + secretPath + "?key=" + secretQuery
	client, err := rpc.NewClient(rpc.Providers{caip.EIP155Chain(1): {{URL: telemetry.Secret(address), RequestsPerSecond: 1000}}}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	chain, _ := client.Chain(caip.EIP155Chain(1))
	return chain.All()[0]
}

func checkSecrets(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{secretPath, secretQuery, secretUser, secretWord} {
		if strings.Contains(text, secret) {
			t.Errorf("%s has %s: %s", what, secret, text)
		}
	}
}

func TestProvider_HostileAnswers(t *testing.T) {
	t.Parallel()
	hash, other := "0x"+strings.Repeat("aa", 32), "0x"+strings.Repeat("bb", 32)
	block := `{"number":"0x10","hash":"` + hash + `","parentHash":"` + other + `","timestamp":"0x1","transactions":[]}`
	log := `{"address":"0x` + strings.Repeat("11", 20) + `","topics":["` + hash + `"],"data":"0x","blockNumber":"0x10","blockHash":"` + hash +
		`","transactionHash":"` + hash + `","logIndex":"0x0"}`
	one := func(result string) string { return `{"jsonrpc":"2.0","id":$1,"result":` + result + `}` }
	blocks := func() []rpc.Request { return []rpc.Request{rpc.BlockByNumber(rpc.Number(16))} }
	two := func() []rpc.Request {
		return []rpc.Request{rpc.BlockByNumber(rpc.Latest), rpc.TransactionCount(common.Address{}, rpc.Latest)}
	}
	logs := func() []rpc.Request {
		return []rpc.Request{rpc.Logs(rpc.LogFilter{From: 16, To: 20, Addresses: []common.Address{common.HexToAddress("0x" + strings.Repeat("11", 20))}, Topics: [][]common.Hash{{common.HexToHash(hash)}}})}
	}
	receipts := func() []rpc.Request { return []rpc.Request{receipt(common.HexToHash(hash))} }
	tests := []struct {
		name   string
		calls  func() []rpc.Request
		status int
		answer string
		want   error
	}{
		{"nothing", blocks, 200, ``, rpc.ErrMalformed},
		{"a page", blocks, 200, `<html>` + secretPath, rpc.ErrMalformed},
		{"cut", blocks, 200, one(block)[:60], rpc.ErrMalformed},
		{"more after it", blocks, 200, one(block) + `{}`, rpc.ErrMalformed},
		{"null", blocks, 200, `null`, rpc.ErrMalformed},
		{"a number", blocks, 200, `7`, rpc.ErrMalformed},
		{"an empty object", blocks, 200, `{}`, rpc.ErrMalformed},
		{"a list for one", blocks, 200, `[` + one(block) + `]`, rpc.ErrMalformed},
		{"no id", blocks, 200, `{"result":` + block + `}`, rpc.ErrMalformed},
		{"id of another", blocks, 200, `{"id":999999,"result":` + block + `}`, rpc.ErrMalformed},
		{"id a text", blocks, 200, `{"id":"$1","result":` + block + `}`, rpc.ErrMalformed},
		{"id negative", blocks, 200, `{"id":-$1,"result":` + block + `}`, rpc.ErrMalformed},
		{"a member twice", blocks, 200, `{"id":$1,"result":null,"result":` + block + `}`, rpc.ErrMalformed},
		{"neither result nor error", blocks, 200, `{"id":$1}`, rpc.ErrMalformed},
		{"both result and error", blocks, 200, `{"id":$1,"result":` + block + `,"error":{"code":1,"message":""}}`, rpc.ErrMalformed},
		{"error a number", blocks, 200, `{"id":$1,"error":7}`, rpc.ErrMalformed},
		{"error code a text", blocks, 200, `{"id":$1,"error":{"code":"x"}}`, rpc.ErrMalformed},
		{"deep", blocks, 200, one(strings.Repeat(`[`, 20000)), rpc.ErrMalformed},
		{"another block", blocks, 200, one(strings.Replace(block, "0x10", "0x11", 1)), rpc.ErrMalformed},
		{"a pending block", blocks, 200, one(strings.Replace(block, `"0x10"`, "null", 1)), rpc.ErrMalformed},
		{"a block of numbers", blocks, 200, one(`{"number":16}`), rpc.ErrMalformed},
		{"a list as block", blocks, 200, one(`[]`), rpc.ErrMalformed},
		{"object for a batch", two, 200, one(block), rpc.ErrMalformed},
		{"one of two", two, 200, `[` + one(block) + `]`, rpc.ErrMalformed},
		{"one twice", two, 200, `[` + one(block) + `,` + one(block) + `]`, rpc.ErrMalformed},
		{"three for two", two, 200, `[` + one(block) + `,{"id":$2,"result":"0x1"},{"id":77,"result":"0x1"}]`, rpc.ErrMalformed},
		{"no ids", two, 200, `[{"result":"0x1"},{"result":"0x1"}]`, rpc.ErrMalformed},
		{"an empty list", two, 200, `[]`, rpc.ErrMalformed},
		{"nulls in the list", two, 200, `[null,null]`, rpc.ErrMalformed},
		{"batch refused by one object", two, 200, `{"error":{"code":-32005,"message":"rate limit"},"id":null}`, rpc.ErrRate},
		{"batch refused in a list", two, 200, `[{"error":{"code":-32005,"message":"rate limit"},"id":null}]`, rpc.ErrRate},
		{"logs null", logs, 200, one(`null`), rpc.ErrMalformed},
		{"logs an object", logs, 200, one(log), rpc.ErrMalformed},
		{"a log of a later block", logs, 200, one(`[` + strings.Replace(log, "0x10", "0x15", 1) + `]`), rpc.ErrMalformed},
		{"a log of an earlier block", logs, 200, one(`[` + strings.Replace(log, "0x10", "0xf", 1) + `]`), rpc.ErrMalformed},
		{"a log of another contract", logs, 200, one(`[` + strings.Replace(log, "1111", "1112", 1) + `]`), rpc.ErrMalformed},
		{"a log of another event", logs, 200, one(`[` + strings.Replace(log, hash, other, 1) + `]`), rpc.ErrMalformed},
		{"a log without topics", logs, 200, one(`[` + strings.Replace(log, `["`+hash+`"]`, `[]`, 1) + `]`), rpc.ErrMalformed},
		{"a removed log", logs, 200, one(`[{"removed":true,` + log[1:] + `]`), rpc.ErrMalformed},
		{"another receipt", receipts, 200, one(`{"transactionHash":"` + other + `","blockNumber":"0x1","blockHash":"` + hash + `","from":"0x` + strings.Repeat("11", 20) + `","status":"0x1","logs":[]}`), rpc.ErrMalformed},
		{"a server error", blocks, 502, `<html>` + secretQuery, rpc.ErrTransport},
		{"forbidden, with a result", blocks, 403, one(block), rpc.ErrTransport},
		{"gone", blocks, 404, ``, rpc.ErrTransport},
		{"a range error with a status", logs, 413, `{"id":$1,"error":{"code":-32614,"message":"eth_getLogs is limited to a 10,000 range"}}`, rpc.ErrRange},
		{"a limit of requests", blocks, 429, `x`, rpc.ErrRate},
		{"a key in the message", blocks, 200, `{"id":$1,"error":{"code":-32000,"message":"header not found for /v3/` + secretPath + `?key=` + secretQuery + `"}}`, rpc.ErrMissing},
		{"an error that is a text", blocks, 401, `{"error":"rate limit of ` + secretUser + `:` + secretWord + `"}`, rpc.ErrRate},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			provider := answering(t, test.status, test.answer, registry)
			calls := test.calls()
			whole := provider.Do(t.Context(), calls...)
			for _, call := range calls {
				err := call.Err()
				if !errors.Is(err, test.want) || (whole != nil && !errors.Is(whole, test.want)) {
					t.Errorf("got %v and %v, want %v", err, whole, test.want)
				}
				checkSecrets(t, "the error", fmt.Sprint(err))
				if len(fmt.Sprint(err)) > 400 {
					t.Errorf("long: %d bytes", len(fmt.Sprint(err)))
				}
			}
			if got := samples(t, registry, "intents_core_rpc_errors_total"); len(got) != len(calls) || slices.ContainsFunc(got, func(n float64) bool { return n == 0 }) {
				t.Errorf("errors of %d calls: %v", len(calls), got)
			}
		})
	}
}
