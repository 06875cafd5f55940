package contracts_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/deploy/chains/contracts/contractstest"
)

// The token takes a fee of one on an order of 100, and none on an order of one that it opens within: together 100 arrive, which must
// not count as 101.
func TestReentrancy_Open(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	token := s.origin.Deploy(t, "ReentrantToken")
	s.stock(t, token)
	s.origin.Send(t, user, 0, token, "mint", token.Address, big.NewInt(1000))
	s.origin.Send(t, user, 0, token, "approveOwn", s.originSettler.Address, big.NewInt(1000))
	outer, inner := s.swap(1), s.swap(2)
	outer.InputToken, inner.InputToken = token.Word(), token.Word()
	outer.AmountIn, inner.AmountIn = big.NewInt(100), big.NewInt(1)
	inner.Sender = token.Word()
	s.prepare(t, token, "open", inner.Order())
	wantRevert(t, "PaymentFailed", s.origin.Revert(t, user, 0, s.originSettler, "open", outer.Order()))
	wantStatus(t, s.origin, s.originSettler, inner, "")
}

// Whatever function a token calls while it is being moved, it is refused, and the call around it goes on.
func TestReentrancy_EveryFunction(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	token := s.origin.Deploy(t, "ReentrantToken")
	s.stock(t, token)
	refundable, inner := s.swap(1), s.swap(2)
	refundable.FillDeadline = uint32(s.origin.Now(t).Unix())
	inner.InputToken, inner.Sender, inner.AmountIn = token.Word(), token.Word(), new(big.Int)
	outer := s.swap(3)
	outer.InputToken, outer.AmountIn = token.Word(), big.NewInt(50) // small enough to bear no fee
	filled := s.bridge(4)
	filled.OriginDomain, filled.DestinationDomain, filled.DestinationSettler = destination, origin, s.originSettler.Word()
	s.origin.Send(t, filler, 990, s.originSettler, "fill", filled.ID(), filled.Encode(), wordBytes(s.origin.Account(filler)))
	s.open(t, refundable)
	s.origin.PassTime(t, time.Minute)
	freeFill := s.bridge(5)
	freeFill.OriginDomain, freeFill.DestinationDomain, freeFill.DestinationSettler = destination, origin, s.originSettler.Word()
	freeFill.AmountOut = new(big.Int)
	receiver := wordBytes(s.origin.Account(filler))

	for nonce, c := range []struct {
		method string
		args   []any
	}{
		{"open", []any{inner.Order()}},
		{"fill", []any{freeFill.ID(), freeFill.Encode(), receiver}},
		{"settle", []any{idsOf([]contractstest.OrderData{filled})}},
		{"refund", []any{[]contractstest.OnchainOrder{refundable.Order()}}},
		{"deliver", []any{uint32(origin), s.originSettler.Word(), false, idsOf([]contractstest.OrderData{refundable}), [][]byte{}}},
	} {
		s.prepare(t, token, c.method, c.args...)
		o := outer
		o.SenderNonce = big.NewInt(int64(100 + nonce))
		s.open(t, o)
		wantStatus(t, s.origin, s.originSettler, o, "OPENED")
		want := hexutil.Encode(crypto.Keccak256([]byte("ReentrantCall()"))[:4])
		if got := hexutil.Encode(contractstest.Read[[]byte](t, s.origin, token, "result")); got != want {
			t.Errorf("%s within a transfer: %s, want the error ReentrantCall, %s", c.method, got, want)
		}
	}
	wantStatus(t, s.origin, s.originSettler, refundable, "OPENED")
	wantBalance(t, "escrow", s.escrow(t, token), 5*50)
	// The guard is open again after every call.
	s.origin.Send(t, user, messageFee, s.originSettler, "refund", []contractstest.OnchainOrder{refundable.Order()})
	wantStatus(t, s.origin, s.originSettler, refundable, "REFUNDED")
}

// A token that is moved by a fill cannot fill, settle or refund the same order a second time.
func TestReentrancy_Fill(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	token := s.origin.Deploy(t, "ReentrantToken")
	s.stock(t, token)
	o, other := s.swap(1), s.swap(2)
	o.OutputToken, o.AmountOut = token.Word(), big.NewInt(50)
	s.open(t, o)
	s.open(t, other) // its escrow is what a second payment would take
	s.prepare(t, token, "fill", o.ID(), o.Encode(), wordBytes(common.HexToAddress("0xbad")))
	s.fill(t, o)
	wantStatus(t, s.origin, s.originSettler, o, "SETTLED")
	if contractstest.Read[bool](t, s.origin, token, "succeeded") {
		t.Error("the fill within the fill succeeded")
	}
	wantBalance(t, "the reentrant filler", s.origin.Balance(t, common.HexToAddress("0xbad")), 0)
	wantBalance(t, "escrow", s.origin.Balance(t, s.originSettler.Address), 1000)
}

// prepare has the token call the settler in its next transfer.
func (s *settlers) prepare(t *testing.T, token contractstest.Deployed, method string, args ...any) {
	t.Helper()
	data, err := s.originSettler.ABI.Pack(method, args...)
	if err != nil {
		t.Fatal(err)
	}
	s.origin.Send(t, user, 0, token, "prepare", s.originSettler.Address, data)
}
