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

// startQuotes runs a solver whose gateway and chains are out of reach, and returns the URL of its quotes.
func startQuotes(t *testing.T, manners solver.Manners) string {
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
		Gateway: "http://127.0.0.1:1", APIKey: "sk_test_0123456789", Quotes: listener, Manners: manners, Log: slog.New(slog.DiscardHandler),
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
	url := startQuotes(t, solver.Manners{})
	for name, c := range map[string]struct {
		body    string
		in, out string
	}{
		"dollars for ether":      {request(dollars, "3000000000", ether, "", "exact-input"), "3000000000", "997000000000000000"},
		"the native token":       {request(common.Address{}, "1000000000000000000", dollars, "", "exact-input"), "1000000000000000000", "2991000000"},
		"an exact output":        {request(dollars, "", dollars, "997000", "exact-output"), "1000000", "997000"},
		"an input is rounded up": {request(dollars, "", ether, "1", "exact-output"), "1", "1"},
		"the most that is paid":  {request(dollars, "", dollars, "1000000000000", "exact-output"), "1003009027082", "1000000000000"},
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

// All members of the specification are taken, and a quote holds for as long as is asked.
func TestQuotes_OptionalMembers(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(30 * time.Minute).Unix()
	body := strings.NewReplacer(
		`{"intent":{`, fmt.Sprintf(`{"user":%q,"supportedTypes":["oif-resource-lock-v0","oif-escrow-v0"],"intent":{"minValidUntil":%d,"preference":"speed",`+
			`"originSubmission":{"mode":"user"},"failureHandling":["refund-automatic"],"partialFill":false,"metadata":{"a":1},`, interoperable(31337, common.Address{1}), until),
		`"user":`, `"lock":null,"user":`, `"receiver":`, `"amount":null,"calldata":null,"receiver":`,
	).Replace(request(dollars, "1000000", dollars, "", "exact-input"))
	status, text := ask(t, startQuotes(t, solver.Manners{}), body)
	if status != http.StatusOK || !strings.Contains(text, fmt.Sprintf(`"validUntil":%d,`, until)) {
		t.Errorf("%d %s", status, text)
	}
}

func TestQuotes_Refused(t *testing.T) {
	t.Parallel()
	url := startQuotes(t, solver.Manners{})
	good := request(dollars, "1000000", dollars, "", "exact-input")
	with := func(old, replacement string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("no %s in %s", old, good)
		}
		return strings.Replace(good, old, replacement, 1)
	}
	amount := func(digits string) string { return with(`"1000000"`, digits) }
	const invalid, asset, liquidity = "INVALID_REQUEST", "UNSUPPORTED_ASSET", "INSUFFICIENT_LIQUIDITY"
	for name, c := range map[string]struct {
		body string
		want int
		kind string
	}{
		"no JSON":                     {"{", 400, invalid},
		"an unknown member":           {with(`"swapType"`, `"slippage":1,"swapType"`), 400, invalid},
		"both amounts":                {request(dollars, "1", dollars, "1", "exact-input"), 400, invalid},
		"no amount":                   {amount(`"01"`), 400, invalid},
		"no address":                  {with("0x0001", "0x0002"), 400, invalid},
		"a lock":                      {with(`"user"`, `"lock":{"kind":"the-compact"},"user"`), 400, invalid},
		"calldata":                    {with(`"receiver"`, `"calldata":"0x095ea7b3","receiver"`), 400, invalid},
		"other order types":           {with(`{"intent"`, `{"supportedTypes":["oif-resource-lock-v0"],"intent"`), 400, invalid},
		"valid for more than an hour": {with(`"swapType"`, fmt.Sprintf(`"minValidUntil":%d,"swapType"`, time.Now().Add(2*time.Hour).Unix())), 400, invalid},
		"another chain":               {strings.ReplaceAll(good, "027a6a", "027a6b"), 422, asset},
		"a token without a price":     {request(common.HexToAddress("0xfee"), "1", dollars, "", "exact-input"), 422, asset},
		"too small":                   {request(ether, "1", dollars, "", "exact-input"), 422, liquidity},
		"a unit more than is paid":    {request(dollars, "", dollars, "1000000000001", "exact-output"), 422, liquidity},
	} {
		status, text := ask(t, url, c.body)
		var refused struct{ Error, Message string }
		if err := json.Unmarshal([]byte(text), &refused); err != nil || status != c.want || refused.Error != c.kind || refused.Message == "" {
			t.Errorf("%s: %d %s, %v", name, status, text, err)
		}
	}
}

// The framework's own solver takes a token that it does not know for a fault of its own, and quotes what it pays before its price moves.
func TestQuotes_Manners(t *testing.T) {
	t.Parallel()
	url := startQuotes(t, solver.Manners{FailsUnsupported: true, PriceMove: 100})
	status, text := ask(t, url, request(common.HexToAddress("0xfee"), "1", dollars, "", "exact-input"))
	if want := `{"error":"INTERNAL_ERROR","message":"Token not supported"}`; status != http.StatusInternalServerError || text != want {
		t.Errorf("a token without a price: %d %s", status, text)
	}
	if status, text = ask(t, url, request(dollars, "1000000", dollars, "", "exact-input")); status != http.StatusOK || !strings.Contains(text, `"997000"`) {
		t.Errorf("%d %s", status, text)
	}
}
