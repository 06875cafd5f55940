package rpc_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/rpc"
)

// The answers are those of anvil 1.7 and of go-ethereum 1.17, without members that are not read.
func TestSimulate(t *testing.T) {
	t.Parallel()
	const good = `{"status":"0x1","returnData":"0x2a","logs":[],"gasUsed":"0x5258","maxUsedGas":"0x5300"}`
	reverts := rpc.Simulated{Returned: []byte{0x4a, 0x31, 0x3c, 0x2d}}
	for name, c := range map[string]struct {
		calls string
		want  rpc.Simulated
	}{
		"succeeds":                       {good, rpc.Simulated{Succeeded: true, Returned: []byte{0x2a}, Gas: 0x5300}},
		"without maxUsedGas":             {`{"status":"0x1","returnData":"0x","gasUsed":"0x5208"}`, rpc.Simulated{Succeeded: true, Returned: []byte{}, Gas: 26_250}},
		"reverts, go-ethereum":           {`{"status":"0x0","returnData":"0x","logs":[],"error":{"code":3,"message":"execution reverted","data":"0x4a313c2d"}}`, reverts},
		"reverts, anvil":                 {`{"status":"0x0","returnData":"0x4a313c2d","logs":[],"error":{"code":-3200,"message":"execution failed"}}`, reverts},
		"a message that quotes any byte": {"{\"status\":\"0x0\",\"returnData\":\"0x4a313c2d\",\"error\":{\"message\":\"\xff\"}}", reverts},
		"runs out of gas":                {`{"status":"0x0","returnData":"0x","error":{"code":-32015,"message":"out of gas"}}`, rpc.Simulated{Returned: []byte{}}},
	} {
		p := answering(t, 200, `{"id":$1,"result":[{"number":"0x1","calls":[`+good+`,`+c.calls+`]}]}`, nil)
		got, err := rpc.Fetch(t.Context(), p, rpc.Simulate(rpc.Message{To: common.Address{1}}, rpc.Message{To: common.Address{2}, Data: []byte{7}}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got[1]); diff != "" || len(got) != 2 {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSimulate_Request(t *testing.T) {
	t.Parallel()
	var asked struct {
		Method string
		Params []any
	}
	p := handled(t, func(_ http.ResponseWriter, body string) {
		if err := json.Unmarshal([]byte(body), &asked); err != nil {
			t.Error(err)
		}
	})
	_ = p.Do(t.Context(), rpc.Simulate(rpc.Message{To: common.Address{1}}, rpc.Message{From: common.Address{2}, Data: []byte{7}}))
	zeros := func(n int) string { return strings.Repeat("0", n) }
	want := []any{map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{
		map[string]any{"from": "0x" + zeros(40), "to": "0x01" + zeros(38), "value": "0x0", "data": "0x"},
		map[string]any{"from": "0x02" + zeros(38), "to": "0x" + zeros(40), "value": "0x0", "data": "0x07"},
	}}}}, "latest"}
	if diff := cmp.Diff(want, asked.Params); diff != "" || asked.Method != "eth_simulateV1" {
		t.Errorf("%s (-want +got):\n%s", asked.Method, diff)
	}
}

func TestSimulate_HostileAnswers(t *testing.T) {
	t.Parallel()
	const good = `{"status":"0x1","returnData":"0x","gasUsed":"0x5208"}`
	for name, result := range map[string]string{
		"null":                 `null`,
		"an object":            `{"calls":[` + good + `]}`,
		"no block":             `[]`,
		"null for a block":     `[null]`,
		"two blocks":           `[{"calls":[` + good + `]},{"calls":[` + good + `]}]`,
		"no calls":             `[{}]`,
		"too few calls":        `[{"calls":[]}]`,
		"too many calls":       `[{"calls":[` + good + `,` + good + `]}]`,
		"null for a call":      `[{"calls":[null]}]`,
		"no status":            `[{"calls":[{"returnData":"0x","gasUsed":"0x5208"}]}]`,
		"a status of two":      `[{"calls":[{"status":"0x2","returnData":"0x","gasUsed":"0x5208"}]}]`,
		"a status of a number": `[{"calls":[{"status":1,"returnData":"0x","gasUsed":"0x5208"}]}]`,
		"no data":              `[{"calls":[{"status":"0x1","gasUsed":"0x5208"}]}]`,
		"data of half a byte":  `[{"calls":[{"status":"0x1","returnData":"0x1","gasUsed":"0x5208"}]}]`,
		"no gas":               `[{"calls":[{"status":"0x1","returnData":"0x"}]}]`,
		"gas beyond any block": `[{"calls":[{"status":"0x1","returnData":"0x","gasUsed":"0xffffffffffffffff"}]}]`,
		"an error of a text":   `[{"calls":[{"status":"0x0","returnData":"0x","error":"x"}]}]`,
		"a member twice":       `[{"calls":[{"status":"0x0","status":"0x1","returnData":"0x"}]}]`,
	} {
		p := answering(t, 200, `{"id":$1,"result":`+result+`}`, nil)
		if got, err := rpc.Fetch(t.Context(), p, rpc.Simulate(rpc.Message{})); !errors.Is(err, rpc.ErrMalformed) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	huge := provider(t, "http://node.test", rpc.Options{Transport: fixed(`{"id":2,"result":[{"calls":[` + strings.Repeat(good+`,`, 1<<20) + good + `]}]}`)})
	if _, err := rpc.Fetch(t.Context(), huge, rpc.Simulate(rpc.Message{})); !errors.Is(err, rpc.ErrTooLarge) {
		t.Errorf("huge: %v", err)
	}
}
