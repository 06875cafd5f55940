package api_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/api"
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

func TestCreateTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := func(d time.Duration) string {
		return time.Now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	for name, request := range map[string]string{
		"a transfer": transferBody,
		"a transfer that says everything": body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, sepoliaUSDC, "5",
			`,"deadline":"`+in(7*24*time.Hour-time.Minute)+`","reference":"Rechnung №42 \u0026 \"more\"","labels":{"order":"42","customer":"cus_81"}`),
		"lower-case addresses":           strings.ToLower(transferBody),
		"a transfer of the native asset": body(aliceOnSepolia, sepoliaETH, "5", bobOnSepolia, "", "", ""),
		"a swap":                         swapBody,
		"a swap of the native asset":     body(aliceOnSepolia, sepoliaETH, "5", bobOnSepolia, sepoliaWETH, "4", ""),
		"a bridge":                       bridgeBody,
		"a bridge of the native asset":   body(aliceOnSepolia, sepoliaETH, "5", bobOnBase, baseUSDC, "4", ""),
		"a bridge to a chain whose number fits no 32 bits": body(aliceOnSepolia, sepoliaUSDC, "5", bobOnFar, farUSDC, "4", `,"deadline":"`+in(time.Hour)+`"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := uuid.New()
			got := s.example(t, name, "POST", "/v2/transfers", request, keyed(account, "test")...)
			id := pgtest.LookUp[string](t, s.store, `SELECT id FROM transfers WHERE account_id = $1`, account.String())
			if location := got.Header["Location"]; location != "/v2/transfers/"+id {
				t.Errorf("Location: %s, the intent is %s", location, id)
			}
		})
	}
}

// A client can encode the order again from its named fields and find the order id.
func TestCreateTransfer_OrderEncoding(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, request := range []string{
		transferBody, swapBody, bridgeBody, body(aliceOnSepolia, sepoliaETH, "5", bobOnBase, baseUSDC, "4", ""),
		body(aliceOnSepolia, sepoliaUSDC, "5", bobOnFar, farUSDC, "4", ""),
	} {
		response := s.send(t, "POST", "/v2/transfers", request, keyed(uuid.New(), "test")...)
		var got struct {
			ID, OrderID string
			Deadline    time.Time
			Order       json.RawMessage
			Tx          struct{ Data string }
		}
		if err := json.Unmarshal([]byte(readAll(t, response)), &got); err != nil || response.StatusCode != 201 {
			t.Fatalf("%d, %v", response.StatusCode, err)
		}
		var order api.ClientOrder
		if err := json.Unmarshal(got.Order, &order); err != nil {
			t.Fatal(err)
		}
		encoded, err := order.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(encoded, order.Encoded); diff != "" {
			t.Errorf("encoded (-rebuilt +got):\n%s", diff)
		}
		if id := crypto.Keccak256Hash(encoded).Hex(); id != got.OrderID {
			t.Errorf("order id %s, rebuilt %s", got.OrderID, id)
		}
		if nonce, _ := new(big.Int).SetString(strings.ReplaceAll(got.ID, "-", ""), 16); nonce.String() != order.Nonce {
			t.Errorf("nonce %s of intent %s", order.Nonce, got.ID)
		}
		if int64(order.FillDeadline) != got.Deadline.Unix() || time.Until(got.Deadline).Round(time.Minute) != time.Hour {
			t.Errorf("fill deadline %d, deadline %s: want the default of an hour", order.FillDeadline, got.Deadline)
		}
		outputs := common.Bytes2Hex(encoded[len(encoded)-11*32:]) // the output as open's argument has it too
		if strings.HasPrefix(got.Tx.Data, "0x7515fd56") && !strings.HasSuffix(got.Tx.Data, outputs) {
			t.Error("the transaction opens another order")
		}
	}
}
