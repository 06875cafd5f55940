package api_test

import (
	"encoding/json"
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
	"intents.internal/core/web/webtest"
)

func TestCreateTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := func(d time.Duration) string {
		return time.Now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	for name, request := range map[string]string{
		"a transfer": webtest.TransferBody,
		"a transfer that says everything": webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, webtest.SepoliaUSDC, "5",
			`,"deadline":"`+in(7*24*time.Hour-time.Minute)+`","reference":"Rechnung №42 \u0026 \"more\"","labels":{"order":"42","customer":"cus_81"}`),
		"lower-case addresses":           strings.ToLower(webtest.TransferBody),
		"a transfer of the native asset": webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnSepolia, "", "", ""),
		"a swap":                         webtest.SwapBody,
		"a swap of the native asset":     webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnSepolia, webtest.SepoliaWETH, "4", ""),
		"a bridge":                       webtest.BridgeBody,
		"a bridge of the native asset":   webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnBase, webtest.BaseUSDC, "4", ""),
		"a bridge to a chain whose number fits no 32 bits": webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnFar, webtest.FarUSDC, "4", `,"deadline":"`+in(time.Hour)+`"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := uuid.New()
			got := s.Example(t, name, "POST", "/v2/transfers", request, webtest.Keyed(account, "test")...)
			id := pgtest.LookUp[string](t, s.Store, `SELECT id FROM transfers WHERE account_id = $1`, account.String())
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
		webtest.TransferBody, webtest.SwapBody, webtest.BridgeBody, webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnBase, webtest.BaseUSDC, "4", ""),
		webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnFar, webtest.FarUSDC, "4", ""),
	} {
		response := s.Send(t, "POST", "/v2/transfers", request, webtest.Keyed(uuid.New(), "test")...)
		var got struct {
			ID, OrderID string
			Deadline    time.Time
			Order       json.RawMessage
			Tx          struct{ Data string }
		}
		if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &got); err != nil || response.StatusCode != 201 {
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
