package contracts_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/deploy/chains/contracts/contractstest"
)

const (
	origin, destination = 31337, 31338
	// messageFee is what settle and refund cost, in wei.
	messageFee = 5
	// The accounts of each chain: the owner of the settlers, who deploys all contracts, and the others.
	owner, user, filler, stranger = 0, 1, 2, 3
)

func wordBytes(address common.Address) []byte { return common.LeftPadBytes(address[:], 32) }

// settlers are two chains with a settler each. The accounts' numbers are the same on both; their addresses are not.
type settlers struct {
	origin, destination               *contractstest.Chain
	originSettler, destinationSettler contractstest.Deployed
	deadline                          time.Time
}

func startSettlers(t *testing.T, sameChain bool) *settlers {
	t.Helper()
	s := &settlers{origin: contractstest.Start(t, origin), destination: contractstest.Start(t, destination)}
	s.originSettler = s.origin.Deploy(t, "Settler", uint32(origin), sameChain, big.NewInt(messageFee))
	s.destinationSettler = s.destination.Deploy(t, "Settler", uint32(destination), sameChain, big.NewInt(messageFee))
	s.deadline = time.Now().Add(time.Hour)
	return s
}

// bridge is an order from the origin to the destination, native in and out.
func (s *settlers) bridge(nonce int64) contractstest.OrderData {
	return contractstest.OrderData{
		Sender: contractstest.Word(s.origin.Account(user)), Recipient: contractstest.Word(common.HexToAddress("0x1234")),
		AmountIn: big.NewInt(1000), AmountOut: big.NewInt(990), SenderNonce: big.NewInt(nonce),
		OriginDomain: origin, DestinationDomain: destination, DestinationSettler: s.destinationSettler.Word(),
		FillDeadline: uint32(s.deadline.Unix()), Data: []byte{},
	}
}

// swap is an order on the origin alone.
func (s *settlers) swap(nonce int64) contractstest.OrderData {
	o := s.bridge(nonce)
	o.DestinationDomain, o.DestinationSettler = origin, s.originSettler.Word()
	return o
}

// open opens an order as its sender, with its input where that is native.
func (s *settlers) open(t *testing.T, o contractstest.OrderData) {
	t.Helper()
	s.origin.Send(t, user, nativeAmount(o.InputToken, o.AmountIn), s.originSettler, "open", o.Order())
}

// nativeAmount is what a call must carry.
func nativeAmount(token [32]byte, amount *big.Int) int64 {
	if token != [32]byte{} {
		return 0
	}
	return amount.Int64()
}

// wantStatus fails the test if the order has another status at a settler.
func wantStatus(t *testing.T, c *contractstest.Chain, settler contractstest.Deployed, o contractstest.OrderData, want string) {
	t.Helper()
	got := contractstest.Read[[32]byte](t, c, settler, "orderStatus", o.ID())
	if text := strings.TrimRight(string(got[:]), "\x00"); text != want {
		t.Errorf("status %q, want %q", text, want)
	}
}

func (s *settlers) wantStatus(t *testing.T, o contractstest.OrderData, atOrigin, atDestination string) {
	t.Helper()
	wantStatus(t, s.origin, s.originSettler, o, atOrigin)
	wantStatus(t, s.destination, s.destinationSettler, o, atDestination)
}

// deliver passes the message of the destination's settler on to the origin's.
func (s *settlers) deliver(t *testing.T, filled bool, orders ...contractstest.OrderData) {
	t.Helper()
	s.deliverFrom(t, destination, s.destinationSettler.Word(), filled, orders...)
}

func (s *settlers) deliverFrom(t *testing.T, domain uint32, settler [32]byte, filled bool, orders ...contractstest.OrderData) {
	t.Helper()
	var ids [][32]byte
	var data [][]byte
	for _, o := range orders {
		ids = append(ids, o.ID())
		data = append(data, wordBytes(s.origin.Account(filler)))
	}
	s.origin.Send(t, owner, 0, s.originSettler, "deliver", domain, settler, filled, ids, data)
}

// wantRevert fails the test if a call does not revert with this error.
func wantRevert(t *testing.T, want, got string) {
	t.Helper()
	if got != want {
		t.Errorf("reverts with %q, want %q", got, want)
	}
}

func wantBalance(t *testing.T, what string, got *big.Int, want int64) {
	t.Helper()
	if got.Cmp(big.NewInt(want)) != 0 {
		t.Errorf("%s has %s, want %d", what, got, want)
	}
}
