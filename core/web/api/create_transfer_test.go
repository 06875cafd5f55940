package api_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/crypto/sha3"

	"intents.internal/core/store/postgres/pgtest"
)

const (
	alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

	aliceOnSepolia = "eip155:11155111:" + alice
	bobOnSepolia   = "eip155:11155111:" + bob
	bobOnBase      = "eip155:84532:" + bob
	bobOnFar       = "eip155:99000000001:" + bob
	bobOnArbitrum  = "eip155:421614:" + bob
	aliceOnMainnet = "eip155:1:" + alice
	bobOnMainnet   = "eip155:1:" + bob

	sepoliaETH   = "eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
	sepoliaUSDC  = "eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	sepoliaWETH  = "eip155:11155111:0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"
	baseUSDC     = "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e"
	arbitrumUSDC = "eip155:421614:0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d"
	farUSDC      = "eip155:99000000001:0x0000000000000000000000000000000000420042"
	mainnetUSDC  = "eip155:1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
)

// body writes a request; empty parts are left out. rest is what follows, such as `,"reference":"inv-42"`.
func body(fromAccount, fromToken, amount, toAccount, toToken, toAmount, rest string) string {
	leg := func(parts ...string) string {
		var fields []string
		for i := 0; i < len(parts); i += 2 {
			if parts[i+1] != "" {
				fields = append(fields, fmt.Sprintf("%q:%q", parts[i], parts[i+1]))
			}
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	return fmt.Sprintf(`{"source":%s,"destination":%s%s}`,
		leg("account", fromAccount, "token", fromToken, "amount", amount),
		leg("account", toAccount, "token", toToken, "amount", toAmount), rest)
}

var (
	transferBody = body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "", "")
	swapBody     = body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, sepoliaWETH, "4", "")
	bridgeBody   = body(aliceOnSepolia, sepoliaUSDC, "5", bobOnBase, baseUSDC, "4", "")
)

// The 32-byte words of what the requests name.
const (
	wordAlice    = "000000000000000000000000f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
	wordBob      = "00000000000000000000000070997970c51812dc3a010c7d01b50e0d17dc79c8"
	wordUSDC     = "0000000000000000000000001c7d4b196cb0c7b01d743fbc6116a902379c7238"
	wordWETH     = "000000000000000000000000fff9976782d46cc05630d1f6ebab18b2324d6b14"
	wordBaseUSDC = "000000000000000000000000036cbd53842c5426634e7929541ec2318f3dcf7e"
	wordFarUSDC  = "0000000000000000000000000000000000000000000000000000000000420042"
	wordZero     = "0000000000000000000000000000000000000000000000000000000000000000"
	wordFive     = "0000000000000000000000000000000000000000000000000000000000000005"
	wordSettler  = "0000000000000000000000000000000000000000000000000000000011155111"
)

// record is a full record as the service writes it. order, tx and its calls are what differs between the kinds of intents.
func record(kind, sourceToken, destination, reference, order, tx, calls string) string {
	return fmt.Sprintf(`{"id":"<id>","type":%q,"status":"created","orderId":"<order id>","createdAt":"<time>","updatedAt":"<time>",
		"metadata":{"chainId":"eip155:11155111"},"final":false,"failure":null,
		"source":{"account":%q,"token":%q,"amount":"5"},"destination":%s,"deadline":"<time>","reference":%s,
		"confirmations":null,"transactions":[],"refundable":false,"verification":null,
		"order":{"scheme":"erc7683-v1/OrderData","senderNonce":"<nonce>","fillDeadline":"<seconds>","data":"0x","orderData":"<order data>",
			"sender":"0x`+wordAlice+`","recipient":"0x`+wordBob+`","amountIn":"5","originDomain":11155111,%s},
		"tx":{"chainId":11155111,"from":"`+alice+`",%s,
			"calls":{"version":"2.0.0","chainId":"0xaa36a7","from":"`+alice+`","atomicRequired":false,"calls":[%s]}}}`,
		kind, aliceOnSepolia, sourceToken, destination, reference, order, tx, calls)
}

func TestCreateTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := func(d time.Duration) string {
		return time.Now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	const settler = "0x0000000000000000000000000000000011155111"
	const openCall = `{"to":"` + settler + `","value":"0x0","data":"<open>"}`
	approveAndOpen := `{"to":"0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","value":"0x0","data":"0x095ea7b3` + wordSettler + wordFive + `"},` + openCall
	const openWithValue = `{"to":"` + settler + `","value":"0x5","data":"<open>"}`
	approval := `"to":"` + settler + `","value":"0","data":"<open>","allowances":[{"token":"` + sepoliaUSDC + `","owner":"` + alice + `",
		"spender":"` + settler + `","amount":"5","approve":{"to":"0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","value":"0",
		"data":"0x095ea7b3` + wordSettler + wordFive + `"}}]`
	settled := `"originSettler":"` + settler + `","inputToken":"0x` + wordUSDC + `"`
	unsettled := `"originSettler":null,"destinationDomain":11155111,"amountOut":"5","destinationSettler":"0x` + wordZero + `"`
	toBob := `{"account":"` + bobOnSepolia + `","token":"` + sepoliaUSDC + `","amount":"5"}`
	callTransfer := `"to":"0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","value":"0","data":"0xa9059cbb` + wordBob + wordFive + `","allowances":[]`
	const transferCall = `{"to":"0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","value":"0x0","data":"0xa9059cbb` + wordBob + wordFive + `"}`

	for name, c := range map[string]struct{ request, want string }{
		"a transfer": {
			transferBody,
			record("transfer", sepoliaUSDC, toBob, "null",
				unsettled+`,"inputToken":"0x`+wordUSDC+`","outputToken":"0x`+wordUSDC+`"`, callTransfer, transferCall),
		},
		"a transfer that says everything": {
			body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, sepoliaUSDC, "5", `,"deadline":"`+in(7*24*time.Hour-time.Minute)+`","reference":"Rechnung №42 \u0026 \"more\""`),
			record("transfer", sepoliaUSDC, toBob, `"Rechnung №42 & \"more\""`,
				unsettled+`,"inputToken":"0x`+wordUSDC+`","outputToken":"0x`+wordUSDC+`"`, callTransfer, transferCall),
		},
		"lower-case addresses": {
			strings.ToLower(transferBody),
			record("transfer", sepoliaUSDC, toBob, "null",
				unsettled+`,"inputToken":"0x`+wordUSDC+`","outputToken":"0x`+wordUSDC+`"`, callTransfer, transferCall),
		},
		"a transfer of the native asset": {
			body(aliceOnSepolia, sepoliaETH, "5", bobOnSepolia, "", "", ""),
			record("transfer", sepoliaETH, `{"account":"`+bobOnSepolia+`","token":"`+sepoliaETH+`","amount":"5"}`, "null",
				unsettled+`,"inputToken":"0x`+wordZero+`","outputToken":"0x`+wordZero+`"`,
				`"to":"`+bob+`","value":"5","data":"0x","allowances":[]`, `{"to":"`+bob+`","value":"0x5","data":"0x"}`),
		},
		"a swap": {
			swapBody,
			record("swap", sepoliaUSDC, `{"account":"`+bobOnSepolia+`","token":"`+sepoliaWETH+`","amount":"4"}`, "null",
				settled+`,"outputToken":"0x`+wordWETH+`","amountOut":"4","destinationDomain":11155111,"destinationSettler":"0x`+wordSettler+`"`, approval, approveAndOpen),
		},
		"a swap of the native asset": {
			body(aliceOnSepolia, sepoliaETH, "5", bobOnSepolia, sepoliaWETH, "4", ""),
			record("swap", sepoliaETH, `{"account":"`+bobOnSepolia+`","token":"`+sepoliaWETH+`","amount":"4"}`, "null",
				`"originSettler":"`+settler+`","inputToken":"0x`+wordZero+`","outputToken":"0x`+wordWETH+`","amountOut":"4",
				"destinationDomain":11155111,"destinationSettler":"0x`+wordSettler+`"`,
				`"to":"`+settler+`","value":"5","data":"<open>","allowances":[]`, openWithValue),
		},
		"a bridge of the native asset": {
			body(aliceOnSepolia, sepoliaETH, "5", bobOnBase, baseUSDC, "4", ""),
			record("bridge", sepoliaETH, `{"account":"`+bobOnBase+`","token":"`+baseUSDC+`","amount":"4"}`, "null",
				`"originSettler":"`+settler+`","inputToken":"0x`+wordZero+`","outputToken":"0x`+wordBaseUSDC+`","amountOut":"4",
				"destinationDomain":84532,"destinationSettler":"0x0000000000000000000000000000000000000000000000000000000000084532"`,
				`"to":"`+settler+`","value":"5","data":"<open>","allowances":[]`, openWithValue),
		},
		"a bridge": {
			bridgeBody,
			record("bridge", sepoliaUSDC, `{"account":"`+bobOnBase+`","token":"`+baseUSDC+`","amount":"4"}`, "null",
				settled+`,"outputToken":"0x`+wordBaseUSDC+`","amountOut":"4","destinationDomain":84532,
				"destinationSettler":"0x0000000000000000000000000000000000000000000000000000000000084532"`, approval, approveAndOpen),
		},
		"a bridge to a chain whose domain is not its number": {
			body(aliceOnSepolia, sepoliaUSDC, "5", bobOnFar, farUSDC, "4", `,"deadline":"`+in(time.Hour)+`"`),
			record("bridge", sepoliaUSDC, `{"account":"`+bobOnFar+`","token":"`+farUSDC+`","amount":"4"}`, "null",
				settled+`,"outputToken":"0x`+wordFarUSDC+`","amountOut":"4","destinationDomain":4242,
				"destinationSettler":"0x0000000000000000000000000000000000000000000000000000000000004242"`, approval, approveAndOpen),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := uuid.New()
			got := s.call(t, "POST", "/v2/transfers", c.request, keyed(account, "test")...)
			id := pgtest.LookUp[string](t, s.store, `SELECT id FROM transfers WHERE account_id = $1`, account.String())
			same(t, "answer", want(t, 201, c.want, "Location", "/v2/transfers/"+id), maskOrder(got))
		})
	}
}

// maskOrder makes equal what of a record follows from its id and deadline; TestCreateTransfer_OrderEncoding looks at it.
func maskOrder(a answer) answer {
	fields, ok := a.Body.(map[string]any)
	if !ok || fields["order"] == nil {
		return a
	}
	order, tx := fields["order"].(map[string]any), fields["tx"].(map[string]any)
	mask := func(in map[string]any, name, as string) { in[name] = as }
	mask(fields, "orderId", "<order id>")
	mask(order, "senderNonce", "<nonce>")
	mask(order, "fillDeadline", "<seconds>")
	mask(order, "orderData", "<order data>")
	if data, _ := tx["data"].(string); strings.HasPrefix(data, "0xe917a962") {
		tx["data"] = "<open>"
		calls := tx["calls"].(map[string]any)["calls"].([]any)
		if last := calls[len(calls)-1].(map[string]any); last["data"] == data {
			last["data"] = "<open>"
		}
	}
	return a
}

// A client can encode the order again from its named fields and find the order id.
func TestCreateTransfer_OrderEncoding(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, request := range []string{transferBody, swapBody, bridgeBody, body(aliceOnSepolia, sepoliaUSDC, "5", bobOnFar, farUSDC, "4", "")} {
		response := s.send(t, "POST", "/v2/transfers", request, keyed(uuid.New(), "test")...)
		var got struct {
			ID, OrderID string
			Deadline    time.Time
			Order       struct {
				Sender, Recipient, InputToken, OutputToken, DestinationSettler, OrderData string
				AmountIn, AmountOut, SenderNonce                                          string
				OriginDomain, DestinationDomain, FillDeadline                             int64
			}
			Tx struct{ Data string }
		}
		if err := json.Unmarshal([]byte(readAll(t, response)), &got); err != nil || response.StatusCode != 201 {
			t.Fatalf("%d, %v", response.StatusCode, err)
		}
		o := got.Order
		encoded := number("32") + o.Sender[2:] + o.Recipient[2:] + o.InputToken[2:] + o.OutputToken[2:] +
			number(o.AmountIn) + number(o.AmountOut) + number(o.SenderNonce) +
			number(fmt.Sprint(o.OriginDomain)) + number(fmt.Sprint(o.DestinationDomain)) + o.DestinationSettler[2:] +
			number(fmt.Sprint(o.FillDeadline)) + number("384") + number("0")
		if diff := cmp.Diff("0x"+encoded, o.OrderData); diff != "" {
			t.Errorf("order data (-rebuilt +got):\n%s", diff)
		}
		data, err := hex.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		keccak := sha3.NewLegacyKeccak256()
		keccak.Write(data)
		if id := "0x" + hex.EncodeToString(keccak.Sum(nil)); id != got.OrderID {
			t.Errorf("order id %s, rebuilt %s", got.OrderID, id)
		}
		if nonce, _ := new(big.Int).SetString(strings.ReplaceAll(got.ID, "-", ""), 16); nonce.String() != o.SenderNonce {
			t.Errorf("nonce %s of intent %s", o.SenderNonce, got.ID)
		}
		if o.FillDeadline != got.Deadline.Unix() || time.Until(got.Deadline).Round(time.Minute) != time.Hour {
			t.Errorf("fill deadline %d, deadline %s: want the default of an hour", o.FillDeadline, got.Deadline)
		}
		if strings.HasPrefix(got.Tx.Data, "0xe917a962") && !strings.Contains(got.Tx.Data, encoded) {
			t.Error("the transaction opens another order")
		}
	}
}

// number is a decimal number as a 32-byte word.
func number(digits string) string {
	n, _ := new(big.Int).SetString(digits, 10)
	return fmt.Sprintf("%064x", n)
}
