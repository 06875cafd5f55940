package contracts_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/deploy/chains/contracts/contractstest"
)

// stocked is how much of a token stock mints and approves.
const stocked = 1_000_000

// stock mints a token for the user and the filler of the origin and approves the settler. Hostile tokens share these functions.
func (s *settlers) stock(t *testing.T, token contractstest.Deployed) {
	t.Helper()
	amount := big.NewInt(stocked)
	for _, account := range []int{user, filler} {
		s.origin.Send(t, account, 0, token, "mint", s.origin.Account(account), amount)
		s.origin.Send(t, account, 0, token, "approve", s.originSettler.Address, amount)
	}
}

// escrow is how much of a token the origin's settler has.
func (s *settlers) escrow(t *testing.T, token contractstest.Deployed) *big.Int {
	t.Helper()
	return contractstest.Read[*big.Int](t, s.origin, token, "balanceOf", s.originSettler.Address)
}

func (s *settlers) revertFill(t *testing.T, o contractstest.OrderData) string {
	t.Helper()
	return s.origin.Revert(t, filler, nativeAmount(o.OutputToken, o.AmountOut), s.originSettler, "fill", o.ID(), o.Encode(), wordBytes(s.origin.Account(filler)))
}

func (s *settlers) fill(t *testing.T, o contractstest.OrderData) {
	t.Helper()
	s.origin.Send(t, filler, nativeAmount(o.OutputToken, o.AmountOut), s.originSettler, "fill", o.ID(), o.Encode(), wordBytes(s.origin.Account(filler)))
}

func TestHostileToken_NoReturnValue(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	token := s.origin.Deploy(t, "NoReturnToken")
	s.stock(t, token)
	in, out, refunded := s.swap(1), s.swap(2), s.bridge(3)
	in.InputToken, out.OutputToken, refunded.InputToken = token.Word(), token.Word(), token.Word()
	for _, o := range []contractstest.OrderData{in, out, refunded} {
		s.open(t, o)
	}
	s.fill(t, in)
	s.fill(t, out)
	s.deliver(t, false, refunded)
	for o, want := range map[*contractstest.OrderData]string{&in: "SETTLED", &out: "SETTLED", &refunded: "REFUNDED"} {
		wantStatus(t, s.origin, s.originSettler, *o, want)
	}
	wantBalance(t, "recipient", contractstest.Read[*big.Int](t, s.origin, token, "balanceOf", common.BytesToAddress(out.Recipient[:])), 990)
	wantBalance(t, "filler", contractstest.Read[*big.Int](t, s.origin, token, "balanceOf", s.origin.Account(filler)), stocked+1000-990)
	wantBalance(t, "escrow", s.escrow(t, token), 0)
}

// A transfer that fails, moves nothing or goes to no contract never opens an order and never fills one.
func TestHostileToken_NoPayment(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	returnsFalse, movesNothing := s.origin.Deploy(t, "IdleToken", false), s.origin.Deploy(t, "IdleToken", true)
	fee := s.origin.Deploy(t, "TestToken", "Fee", "FEE", uint8(6), true)
	for _, token := range []contractstest.Deployed{returnsFalse, movesNothing, fee} {
		s.stock(t, token)
	}
	for nonce, c := range []struct {
		name, want string
		token      [32]byte
	}{
		{"returns false", "SafeERC20FailedOperation", returnsFalse.Word()},
		{"moves nothing", "PaymentFailed", movesNothing.Word()},
		{"takes a fee", "PaymentFailed", fee.Word()},
		{"is no contract", "execution reverted", contractstest.Word(common.HexToAddress("0xdead"))},
	} {
		in, out := s.swap(100), s.swap(int64(nonce))
		in.InputToken, out.OutputToken = c.token, c.token
		if got := s.origin.Revert(t, user, 0, s.originSettler, "open", in.Order()); got != c.want {
			t.Errorf("%s: open reverts with %q, want %q", c.name, got, c.want)
		}
		s.open(t, out)
		if got := s.revertFill(t, out); got != c.want {
			t.Errorf("%s: fill reverts with %q, want %q", c.name, got, c.want)
		}
	}
}

// A token that begins to charge the payer pays no order out of the escrow of the others.
func TestHostileToken_Surcharge(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	token := s.origin.Deploy(t, "SurchargeToken")
	s.stock(t, token)
	o, other := s.swap(1), s.swap(2)
	o.InputToken, other.InputToken = token.Word(), token.Word()
	s.open(t, o)
	s.open(t, other)
	s.origin.Send(t, owner, 0, token, "charge")
	wantRevert(t, "PaymentFailed", s.revertFill(t, o))
	s.origin.PassTime(t, 2*time.Hour)
	wantRevert(t, "PaymentFailed", s.origin.Revert(t, user, messageFee, s.originSettler, "refund", []contractstest.OnchainOrder{o.Order()}))
	wantBalance(t, "escrow", s.escrow(t, token), 2000)
}

// A filler who is the recipient pays itself, which no balance shows.
func TestFill_ToItself(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	token := s.origin.Deploy(t, "TestToken", "Test", "TEST", uint8(6), false)
	s.stock(t, token)
	o := s.swap(1)
	o.OutputToken, o.Recipient = token.Word(), contractstest.Word(s.origin.Account(filler))
	s.open(t, o)
	s.fill(t, o)
	wantStatus(t, s.origin, s.originSettler, o, "SETTLED")
}
