package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/loadtest/anvil"
)

// shortly is a request whose deadline is near.
func shortly(request map[string]any) map[string]any {
	request["deadline"] = time.Now().Add(90 * time.Second).UTC().Format(time.RFC3339)
	return request
}

// expire has the chain's clock pass the time from which an order can be refunded.
func (c *evmChain) expire(t *testing.T, r chainRecord) {
	t.Helper()
	c.PassTime(t, time.Unix(int64(r.Order.Expires)+1, 0))
}

// Orders that expire, with a clock that is put forward: one that nobody fills is refunded by the transaction that the API gives, and one whose
// solver never claims stays filled when it is refunded as well.
func refunds(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	open := func() chainRecord {
		t.Helper()
		r := client.create(t, shortly(body(from.at(from.account(t)), from.at(from.token.Address), sent, to.at(common.HexToAddress(recipient)), to.native(), received)))
		from.opened(t, r, from.sendCalls(t, r))
		from.Mine(t, 2*depth)
		return client.await(t, r.ID, "confirmed, open finalized")
	}
	unfilled, unclaimed := open(), open()
	to.fill(t, to.account(t), unclaimed.OrderID, unclaimed.output(t))
	to.Mine(t, 2*depth)
	client.await(t, unclaimed.ID, "filled, open finalized, fill finalized")

	if got := unfilled.Order; got.Expires != got.FillDeadline+claimPeriod {
		t.Errorf("the order with the deadline %d expires at %d", got.FillDeadline, got.Expires)
	}
	from.PassTime(t, time.Unix(int64(unfilled.Order.Expires), 0)) // a refund needs a later block
	refused(t, client.do(http.MethodGet, "/v2/transfers/"+unfilled.ID+"/refund", nil), http.StatusConflict, "NOT_REFUNDABLE")
	from.expire(t, unfilled)
	from.expire(t, unclaimed)
	eventually(t, func() error {
		if way := s.way(t, unfilled.ID); way != "created submitted confirmed confirmed" { // the last event says that it is refundable
			return fmt.Errorf("went %q", way)
		}
		return nil
	})
	anybody := from.owner()
	from.Execute(t, anvil.Transaction{From: anybody, To: &from.input.Address, Data: client.refundData(t, unfilled)})
	from.Mine(t, 2*depth)
	client.await(t, unfilled.ID, "refunded, open finalized, refund finalized")
	from.expectStatus(t, unfilled, orderRefunded)
	if got := anvil.Read[*big.Int](t, from.Node, from.token, "balanceOf", unfilled.Order.User); got.Cmp(big.NewInt(tokens)) != 0 {
		t.Errorf("the sender has %s of %d units after the refund", got, tokens)
	}

	refused(t, client.do(http.MethodGet, "/v2/transfers/"+unclaimed.ID+"/refund", nil), http.StatusConflict, "NOT_REFUNDABLE")
	from.refund(t, anybody, unclaimed)
	from.Mine(t, 2*depth)
	client.await(t, unclaimed.ID, "filled, open finalized, fill finalized, refund finalized")
	for r, want := range map[string]string{unfilled.ID: "created submitted confirmed confirmed refunded", unclaimed.ID: "created submitted confirmed filled"} {
		if way := s.way(t, r); way != want {
			t.Errorf("went %q, want %q", way, want)
		}
	}
}

// refundData waits until an order can be refunded, and returns the call data of the transaction that does it, at its input settler.
func (c *chainClient) refundData(t *testing.T, r chainRecord) []byte {
	t.Helper()
	var answer struct{ Tx *walletTx }
	eventually(t, func() error {
		a := c.do(http.MethodGet, "/v2/transfers/"+r.ID+"/refund", nil)
		if a.Status != http.StatusOK {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return json.Unmarshal(a.Body, &answer)
	})
	return answer.Tx.Calls.Calls[0].Data
}
