package contracts_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/chains/contracts/contractstest"
)

func TestOpen_OrderID(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	o := s.bridge(1)
	s.open(t, o)
	s.wantStatus(t, o, "OPENED", "")

	// The opener becomes the sender, and the outer deadline the order's.
	order := o.Order()
	order.FillDeadline++
	s.origin.Send(t, stranger, 1000, s.originSettler, "open", order)
	theirs := o
	theirs.Sender, theirs.FillDeadline = contractstest.Word(s.origin.Account(stranger)), order.FillDeadline
	wantStatus(t, s.origin, s.originSettler, theirs, "OPENED")

	var ids []common.Hash
	for _, l := range s.origin.Logs(t, s.originSettler, "Open") {
		ids = append(ids, l.Topics[1])
	}
	if diff := cmp.Diff([]common.Hash{o.ID(), theirs.ID()}, ids); diff != "" {
		t.Errorf("order ids of Open (-want +got):\n%s", diff)
	}
}

func TestOpen_Rejected(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	token := s.origin.Deploy(t, "TestToken", "Test", "TEST", uint8(6), false)
	s.origin.Send(t, user, 0, token, "mint", s.origin.Account(user), big.NewInt(1000))
	s.open(t, s.bridge(1))
	s.origin.Send(t, user, 0, s.originSettler, "invalidateNonces", big.NewInt(2))

	inbound, otherType, inToken := s.bridge(3), s.bridge(3).Order(), s.bridge(3)
	inbound.OriginDomain = destination
	otherType.OrderDataType = [32]byte{1}
	inToken.InputToken = token.Word()
	for _, c := range []struct {
		name, want string
		order      contractstest.OnchainOrder
		value      int64
	}{
		{"nonce of an order before", "InvalidNonce", s.swap(1).Order(), 1000},
		{"invalidated nonce", "InvalidNonce", s.bridge(2).Order(), 1000},
		{"domain of another chain", "InvalidOrderOrigin", inbound.Order(), 1000},
		{"another type", "InvalidOrderType", otherType, 1000},
		{"too little native", "InvalidNativeAmount", s.bridge(3).Order(), 999},
		{"too much native", "InvalidNativeAmount", s.bridge(3).Order(), 1001},
		{"native beside a token", "InvalidNativeAmount", inToken.Order(), 1},
		{"no allowance", "ERC20InsufficientAllowance", inToken.Order(), 0},
	} {
		if got := s.origin.Revert(t, user, c.value, s.originSettler, "open", c.order); got != c.want {
			t.Errorf("%s: reverts with %q, want %q", c.name, got, c.want)
		}
	}

	wantRevert(t, "InvalidNonce", s.origin.Revert(t, user, 0, s.originSettler, "invalidateNonces", big.NewInt(1)))
	// Nonces are those of a sender.
	wantRevert(t, "", s.origin.Revert(t, stranger, 1000, s.originSettler, "open", s.bridge(2).Order()))
	wantBalance(t, "escrow", s.origin.Balance(t, s.originSettler.Address), 1000)
}
