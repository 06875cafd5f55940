package solver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/chains/solver"
)

var dollars, ether = common.HexToAddress("0xd0"), common.HexToAddress("0xe0")

// startQuotes runs a solver whose chains are out of reach, and returns the URL of its quotes.
func startQuotes(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	config := solver.Config{
		Gateway: startGateway(t).URL, APIKey: testKey, Quotes: listener, Log: slog.New(slog.DiscardHandler),
		Prices: []solver.Price{{Decimals: 18, Cents: 300_000}, {dollars, 6, 100}, {ether, 18, 300_000}},
		Chains: []solver.Chain{{ID: "eip155:31337", RPC: "http://127.0.0.1:1", Key: key}, {ID: "eip155:31338", RPC: "http://127.0.0.1:1", Key: key}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- solver.Run(ctx, config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/api/v1/quotes"
}

// interoperable encodes an address on a chain (EIP-7930).
func interoperable(chain uint16, address common.Address) string {
	return fmt.Sprintf("0x0001000002%04x14%x", chain, address[:])
}

func ask(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(bytes.TrimSpace(text))
}

// request asks what a bridge of two tokens brings; one of the amounts is empty.
func request(from common.Address, in string, to common.Address, out, swapType string) string {
	amount := func(digits string) string {
		if digits == "" {
			return ""
		}
		return fmt.Sprintf(`,"amount":%q`, digits)
	}
	return fmt.Sprintf(`{"intent":{"intentType":"oif-swap","swapType":%q,"inputs":[{"user":%q,"asset":%q%s}],"outputs":[{"receiver":%q,"asset":%q%s}]}}`,
		swapType, interoperable(31337, common.Address{1}), interoperable(31337, from), amount(in),
		interoperable(31338, common.Address{2}), interoperable(31338, to), amount(out))
}

func TestQuotes(t *testing.T) {
	t.Parallel()
	url := startQuotes(t)
	for name, c := range map[string]struct {
		body    string
		in, out string
	}{
		"dollars for dollars":       {request(dollars, "1000000", dollars, "", "exact-input"), "1000000", "997000"},
		"dollars for ether":         {request(dollars, "3000000000", ether, "", "exact-input"), "3000000000", "997000000000000000"},
		"the native token":          {request(common.Address{}, "1000000000000000000", dollars, "", "exact-input"), "1000000000000000000", "2991000000"},
		"an output is rounded down": {request(ether, "1000000001", ether, "", "exact-input"), "1000000001", "997000000"},
		"an exact output":           {request(dollars, "", dollars, "997000", "exact-output"), "1000000", "997000"},
		"an input is rounded up":    {request(dollars, "", ether, "1", "exact-output"), "1", "1"},
	} {
		status, text := ask(t, url, c.body)
		var answer struct {
			Quotes []struct {
				ValidUntil int64
				Preview    struct {
					Inputs, Outputs []struct{ Amount, Asset string }
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || len(answer.Quotes) != 1 {
			t.Errorf("%s: %d %s, %v", name, status, text, err)
			continue
		}
		q := answer.Quotes[0]
		if diff := cmp.Diff([]string{c.in, c.out}, []string{q.Preview.Inputs[0].Amount, q.Preview.Outputs[0].Amount}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if left := time.Until(time.Unix(q.ValidUntil, 0)); left < 50*time.Second || left > time.Minute {
			t.Errorf("%s: valid for %s", name, left)
		}
	}
}

func TestQuotes_Refused(t *testing.T) {
	t.Parallel()
	url := startQuotes(t)
	far := strings.ReplaceAll(request(dollars, "1", dollars, "", "exact-input"), interoperable(31338, common.Address{})[:18], interoperable(31339, common.Address{})[:18])
	for name, c := range map[string]struct {
		body string
		want int
		kind string
	}{
		"no JSON":           {"{", 400, "INVALID_REQUEST"},
		"null":              {"null", 400, "INVALID_REQUEST"},
		"no amount":         {request(dollars, "", dollars, "", "exact-input"), 400, "INVALID_REQUEST"},
		"a negative amount": {request(dollars, "-1", dollars, "", "exact-input"), 400, "INVALID_REQUEST"},
		"zero":              {request(dollars, "0", dollars, "", "exact-input"), 400, "INVALID_REQUEST"},
		"an unknown type":   {request(dollars, "1", dollars, "", "limit"), 400, "INVALID_REQUEST"},
		"no address":        {strings.Replace(request(dollars, "1", dollars, "", "exact-input"), "0x00010000", "0x00020000", 1), 400, "INVALID_REQUEST"},
		"another chain":     {far, 422, "UNSUPPORTED_ASSET"},
		"a token unpriced":  {request(common.HexToAddress("0xfee"), "1", dollars, "", "exact-input"), 422, "UNSUPPORTED_ASSET"},
		"too small":         {request(ether, "1", dollars, "", "exact-input"), 422, "INSUFFICIENT_LIQUIDITY"},
		"a huge body":       {`{"intent":"` + strings.Repeat("x", 1<<17) + `"}`, 400, "INVALID_REQUEST"},
	} {
		status, text := ask(t, url, c.body)
		var refused struct{ Error, Message string }
		if err := json.Unmarshal([]byte(text), &refused); err != nil || status != c.want || refused.Error != c.kind || (refused.Message == "") != (c.kind == "") {
			t.Errorf("%s: %d %s, %v", name, status, text, err)
		}
	}
}
