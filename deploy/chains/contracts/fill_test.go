package contracts_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/deploy/chains/contracts/contractstest"
)

func TestFill_Bridge(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, false)
	o, another := s.bridge(1), s.bridge(2)
	s.open(t, o)
	receiver := wordBytes(s.destination.Account(filler))
	elsewhere, otherSettler := s.swap(3), s.bridge(3)
	otherSettler.DestinationSettler = [32]byte{31: 1}
	revert := func(value int64, id [32]byte, data []byte) string {
		t.Helper()
		return s.destination.Revert(t, filler, value, s.destinationSettler, "fill", id, data, receiver)
	}
	wantRevert(t, "InvalidOrderId", revert(990, o.ID(), another.Encode()))
	wantRevert(t, "InvalidOrderDomain", revert(990, elsewhere.ID(), elsewhere.Encode()))
	wantRevert(t, "InvalidOrderDomain", revert(990, otherSettler.ID(), otherSettler.Encode()))
	wantRevert(t, "InvalidNativeAmount", revert(989, o.ID(), o.Encode()))
	wantRevert(t, "InvalidNativeAmount", revert(991, o.ID(), o.Encode()))

	s.destination.Send(t, filler, 990, s.destinationSettler, "fill", o.ID(), o.Encode(), receiver)
	s.wantStatus(t, o, "OPENED", "FILLED")
	wantBalance(t, "recipient", s.destination.Balance(t, common.BytesToAddress(o.Recipient[:])), 990)
	wantRevert(t, "InvalidOrderStatus", revert(990, o.ID(), o.Encode()))

	s.destination.PassTime(t, 2*time.Hour)
	wantRevert(t, "OrderFillExpired", revert(990, another.ID(), another.Encode()))
	wantRevert(t, "InvalidOrderStatus", s.destination.Revert(t, user, messageFee, s.destinationSettler, "refund", []contractstest.OnchainOrder{o.Order()}))
	wantBalance(t, "settler", s.destination.Balance(t, s.destinationSettler.Address), 0)
}

// Without sameChain an order is open in the mapping in which it would have to be unknown.
func TestFill_OwnChain(t *testing.T) {
	t.Parallel()
	for _, sameChain := range []bool{true, false} {
		s := startSettlers(t, sameChain)
		o, unopened := s.swap(1), s.swap(2)
		s.open(t, o)
		receiver := wordBytes(s.origin.Account(filler))
		before := s.origin.Balance(t, s.origin.Account(filler))
		reason := s.origin.Revert(t, filler, 990, s.originSettler, "fill", o.ID(), o.Encode(), receiver)
		if !sameChain {
			wantRevert(t, "InvalidOrderStatus", reason)
			continue
		}
		wantRevert(t, "", reason)
		wantRevert(t, "InvalidOrderStatus", s.origin.Revert(t, filler, 990, s.originSettler, "fill", unopened.ID(), unopened.Encode(), receiver))
		receipt := s.origin.Send(t, filler, 990, s.originSettler, "fill", o.ID(), o.Encode(), receiver)
		wantStatus(t, s.origin, s.originSettler, o, "SETTLED")
		wantRevert(t, "InvalidOrderStatus", s.origin.Revert(t, filler, 990, s.originSettler, "fill", o.ID(), o.Encode(), receiver))
		wantBalance(t, "escrow", s.origin.Balance(t, s.originSettler.Address), 0)
		gas := new(big.Int).Mul(receipt.EffectiveGasPrice, new(big.Int).SetUint64(receipt.GasUsed))
		got := new(big.Int).Sub(new(big.Int).Add(s.origin.Balance(t, s.origin.Account(filler)), gas), before)
		wantBalance(t, "filler, beyond what it had,", got, 10)
		// A message about an order that was settled at once changes nothing.
		s.deliverFrom(t, origin, s.originSettler.Word(), false, o)
		wantStatus(t, s.origin, s.originSettler, o, "SETTLED")
	}
}
