package e2e_test

import (
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/loadtest/anvil"
	intents "intents.internal/pkg/client"
)

// shortly is a request whose deadline is near.
func shortly(request intents.CreateTransfer) intents.CreateTransfer {
	request.Deadline = time.Now().Add(90 * time.Second)
	return request
}

// expire has the chain's clock pass the time from which an order can be refunded.
func (c *evmChain) expire(t *testing.T, r *intents.Transfer) {
	t.Helper()
	c.PassTime(t, time.Unix(r.Order.Expires+1, 0))
}

// Orders that expire, with a clock that is put forward: one that nobody fills is refunded by the transaction that the API gives, and one whose
// solver never claims stays filled when it is refunded as well.
func refunds(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	open := func() *intents.Transfer {
		t.Helper()
		r := client.create(t, shortly(from.order(from.account(t), from.at(from.token.Address), to, to.native())))
		from.opened(t, r, from.sendCalls(t, r))
		from.Mine(t, 2*depth)
		client.await(t, r.ID, "confirmed, open finalized")
		return r
	}
	unfilled, unclaimed := open(), open()
	to.fill(t, to.account(t), unclaimed.OrderID, outputOf(t, unclaimed))
	to.Mine(t, 2*depth)
	client.await(t, unclaimed.ID, "filled, open finalized, fill finalized")

	if got := unfilled.Order; got.Expires != got.FillDeadline+claimPeriod {
		t.Errorf("the order with the deadline %d expires at %d", got.FillDeadline, got.Expires)
	}
	from.PassTime(t, time.Unix(unfilled.Order.Expires, 0)) // a refund needs a later block
	_, err := client.Transfers.Refund(t.Context(), unfilled.ID)
	failed(t, err, http.StatusConflict, intents.CodeNotRefundable)
	from.expire(t, unfilled)
	from.expire(t, unclaimed)
	client.awaitHistory(t, unfilled.ID, "created submitted confirmed confirmed") // the last event says that it is refundable
	refund := calls(t, &must(client.Transfers.Refund(t.Context(), unfilled.ID))(t).Tx)[0]
	refund.From = from.owner() // anybody may send it
	from.Execute(t, refund)
	from.Mine(t, 2*depth)
	client.await(t, unfilled.ID, "refunded, open finalized, refund finalized")
	from.expectStatus(t, unfilled, orderRefunded)
	if got := anvil.Read[*big.Int](t, from.Node, from.token, "balanceOf", common.HexToAddress(unfilled.Order.User)); got.Cmp(big.NewInt(tokens)) != 0 {
		t.Errorf("the sender has %s of %d units after the refund", got, tokens)
	}

	_, err = client.Transfers.Refund(t.Context(), unclaimed.ID)
	failed(t, err, http.StatusConflict, intents.CodeNotRefundable)
	from.refund(t, unclaimed)
	from.Mine(t, 2*depth)
	client.await(t, unclaimed.ID, "filled, open finalized, fill finalized, refund finalized")
	client.awaitHistory(t, unfilled.ID, "created submitted confirmed confirmed refunded")
	client.awaitHistory(t, unclaimed.ID, "created submitted confirmed filled")
}
