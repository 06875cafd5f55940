package contracts_test

import (
	"math/big"
	"testing"
	"time"

	"intents.internal/deploy/chains/contracts/contractstest"
)

func TestSettle(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	o, unfilled, otherOrigin := s.bridge(1), s.bridge(2), s.bridge(3)
	otherOrigin.OriginDomain = 31339
	s.open(t, o)
	s.open(t, unfilled)
	receiver := wordBytes(s.origin.Account(filler))
	for _, filled := range []contractstest.OrderData{o, otherOrigin} {
		s.destination.Send(t, filler, 990, s.destinationSettler, "fill", filled.ID(), filled.Encode(), receiver)
	}
	revert := func(value int64, orders ...contractstest.OrderData) string {
		t.Helper()
		return s.destination.Revert(t, filler, value, s.destinationSettler, "settle", idsOf(orders))
	}
	wantRevert(t, "InvalidOrderStatus", revert(messageFee, o, unfilled))
	wantRevert(t, "InvalidOrderDomain", revert(messageFee, o, otherOrigin))
	wantRevert(t, "InvalidNativeAmount", revert(messageFee-1, o))
	s.destination.Send(t, filler, messageFee, s.destinationSettler, "settle", idsOf([]contractstest.OrderData{o}))
	wantRevert(t, "", revert(messageFee, o)) // a message that is lost can be sent again

	wantRevert(t, "NotOwner", s.origin.Revert(t, stranger, 0, s.originSettler, "deliver",
		uint32(destination), s.destinationSettler.Word(), true, idsOf([]contractstest.OrderData{o}), [][]byte{receiver}))
	s.deliverFrom(t, destination, [32]byte{31: 1}, true, o)
	s.deliverFrom(t, 31339, s.destinationSettler.Word(), true, o)
	s.wantStatus(t, o, "OPENED", "FILLED")

	before := s.origin.Balance(t, s.origin.Account(filler))
	for range 2 { // a message that arrives twice pays once
		s.deliver(t, true, o)
		s.wantStatus(t, o, "SETTLED", "FILLED")
	}
	s.deliver(t, false, o)
	s.wantStatus(t, o, "SETTLED", "FILLED")
	wantBalance(t, "filler, beyond what it had,", new(big.Int).Sub(s.origin.Balance(t, s.origin.Account(filler)), before), 1000)
	wantBalance(t, "escrow", s.origin.Balance(t, s.originSettler.Address), 1000)
}

func TestRefund(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	o, filled, swap := s.bridge(1), s.bridge(2), s.swap(3)
	for _, opened := range []contractstest.OrderData{o, filled, swap} {
		s.open(t, opened)
	}
	receiver := wordBytes(s.origin.Account(filler))
	s.destination.Send(t, filler, 990, s.destinationSettler, "fill", filled.ID(), filled.Encode(), receiver)
	otherOrigin := o
	otherOrigin.OriginDomain = 31339
	revert := func(value int64, orders ...contractstest.OnchainOrder) string {
		t.Helper()
		return s.destination.Revert(t, stranger, value, s.destinationSettler, "refund", orders)
	}
	wantRevert(t, "OrderFillNotExpired", revert(messageFee, o.Order()))

	s.origin.PassTime(t, 2*time.Hour)
	s.destination.PassTime(t, 2*time.Hour)
	before := s.origin.Balance(t, s.origin.Account(user))
	wantRevert(t, "InvalidOrderStatus", revert(messageFee, filled.Order()))
	wantRevert(t, "InvalidOrderDomain", revert(messageFee, swap.Order()))
	wantRevert(t, "InvalidOrderDomain", revert(messageFee, o.Order(), otherOrigin.Order()))
	wantRevert(t, "InvalidNativeAmount", revert(messageFee+1, o.Order()))
	s.destination.Send(t, stranger, messageFee, s.destinationSettler, "refund", []contractstest.OnchainOrder{o.Order()})
	wantRevert(t, "", revert(messageFee, o.Order())) // a message that is lost can be sent again
	s.deliverFrom(t, destination, [32]byte{31: 1}, false, o)
	s.wantStatus(t, o, "OPENED", "")
	for range 2 {
		s.deliver(t, false, o)
		s.wantStatus(t, o, "REFUNDED", "")
	}
	s.deliver(t, true, o) // a forged message about an order that has ended pays nobody
	s.wantStatus(t, o, "REFUNDED", "")
	wantRevert(t, "OrderFillExpired", s.destination.Revert(t, filler, 990, s.destinationSettler, "fill", o.ID(), o.Encode(), receiver))

	// On one chain no message is needed, and the second refund finds nothing to give back.
	s.origin.Send(t, stranger, messageFee, s.originSettler, "refund", []contractstest.OnchainOrder{swap.Order()})
	wantStatus(t, s.origin, s.originSettler, swap, "REFUNDED")
	wantRevert(t, "InvalidOrderStatus", s.origin.Revert(t, stranger, messageFee, s.originSettler, "refund", []contractstest.OnchainOrder{swap.Order()}))
	wantBalance(t, "user, beyond what it had,", new(big.Int).Sub(s.origin.Balance(t, s.origin.Account(user)), before), 2000)
	wantBalance(t, "escrow", s.origin.Balance(t, s.originSettler.Address), 1000)
}

func idsOf(orders []contractstest.OrderData) (ids [][32]byte) {
	for _, o := range orders {
		ids = append(ids, o.ID())
	}
	return ids
}
