package rpc_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/rpc"
)

// fixed answers eth_chainId, which is the first call, and then always the same.
type fixed []byte

func (f fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := []byte(f)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(body, []byte("eth_chainId")) {
		answer = []byte(`{"id":1,"result":"0x1"}`)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer))}, nil
}

func TestProvider_AnswerTooLarge(t *testing.T) {
	t.Parallel()
	answer := fixed(`{"id":2,"result":"` + strings.Repeat("x", 32<<20) + `"}`)
	tests := []struct {
		call rpc.Request
		want error
	}{
		{rpc.Logs(rpc.LogFilter{From: 1, To: 2}), rpc.ErrRange},
		{rpc.Logs(rpc.LogFilter{From: 1, To: 1}), rpc.ErrTooLarge},
		{rpc.BlockByNumber(rpc.Latest), rpc.ErrTooLarge},
	}
	for _, test := range tests {
		p := provider(t, "http://node.test", rpc.Options{Transport: answer})
		if _ = p.Do(t.Context(), test.call); !errors.Is(test.call.Err(), test.want) {
			t.Errorf("got %v, want %v", test.call.Err(), test.want)
		}
	}
}

// FuzzProvider_Answer sends any bytes as the answer to one call, id 2, to three, ids 3 to 5, and to one, id 6: nothing panics, every call has a
// result or an error, and no error has a part of the URL.
func FuzzProvider_Answer(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{}`, `{"id":2,"result":null}`, `{"id":2,"error":{"code":3,"message":"execution reverted","data":"0x01"}}`,
		`{"id":2,"error":{"code":-32005,"message":"` + secretPath + `","data":{"data":{"data":"0x"}}}}`, `{"id":null,"error":"x"}`,
		`[{"id":3,"result":null},{"id":4,"result":[]},{"id":5,"result":"0x01"}]`, `[{"id":5,"result":"0x"},{"id":3,"error":{}},{"id":4,"result":[{}]}]`,
		`{"id":6,"result":[{"calls":[{"status":"0x0","returnData":"0x","error":{"data":"0x01"}}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		p := provider(t, "http://node.test", rpc.Options{Transport: fixed(answer)})
		block, logs, code := rpc.BlockByNumber(rpc.Number(7)), rpc.Logs(rpc.LogFilter{From: 1, To: 9}), rpc.Code(common.Address{}, rpc.Latest)
		for _, requests := range [][]rpc.Request{{block}, {block, logs, code}, {rpc.Simulate(rpc.Message{})}} {
			if err := p.Do(t.Context(), requests...); err != nil {
				checkSecrets(t, "the error", err.Error())
				continue
			}
			if b, err := block.Result(); err == nil && b != nil && b.Number != 7 {
				t.Errorf("block %d instead of 7", b.Number)
			}
			if found, err := logs.Result(); err == nil {
				for _, l := range found {
					if l.BlockNumber < 1 || l.BlockNumber > 9 {
						t.Errorf("a log of block %d", l.BlockNumber)
					}
				}
			}
			for _, r := range requests {
				if r.Err() != nil {
					checkSecrets(t, "the error", r.Err().Error())
				}
			}
		}
	})
}
