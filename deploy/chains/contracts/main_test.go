package contracts_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/deploy/chains/contracts/contractstest"
)

const (
	origin, destination = 31337, 31338
	// messageFee is what settle and refund cost, in wei.
	messageFee = 5
	// The accounts of each chain: the owner of the settlers, who deploys all contracts, and the others.
	owner, user, filler, stranger = 0, 1, 2, 3
)

// onchainOrder is OnchainCrossChainOrder.
type onchainOrder struct {
	FillDeadline  uint32
	OrderDataType [32]byte
	OrderData     []byte
}

// orderData is OrderData, with the members of the ABI.
type orderData struct {
	Sender, Recipient, InputToken, OutputToken [32]byte
	AmountIn, AmountOut, SenderNonce           *big.Int
	OriginDomain, DestinationDomain            uint32
	DestinationSettler                         [32]byte
	FillDeadline                               uint32
	Data                                       []byte
}

// orderDataTypeHash is the type hash of order data that the service writes into its orders.
var orderDataTypeHash = common.HexToHash("0x08d75650babf4de09c9273d48ef647876057ed91d4323f8a2e3ebc2cd8a63b5e")

// orderDataABI encodes order data independently of the contract.
var orderDataABI = func() abi.Arguments {
	fields := "bytes32 sender,bytes32 recipient,bytes32 inputToken,bytes32 outputToken,uint256 amountIn,uint256 amountOut," +
		"uint256 senderNonce,uint32 originDomain,uint32 destinationDomain,bytes32 destinationSettler,uint32 fillDeadline,bytes data"
	var members []abi.ArgumentMarshaling
	for field := range strings.SplitSeq(fields, ",") {
		kind, name, _ := strings.Cut(field, " ")
		members = append(members, abi.ArgumentMarshaling{Name: name, Type: kind})
	}
	tuple, err := abi.NewType("tuple", "", members)
	if err != nil {
		panic(err)
	}
	return abi.Arguments{{Type: tuple}}
}()

func (o orderData) encode() []byte {
	encoded, err := orderDataABI.Pack(o)
	if err != nil {
		panic(err)
	}
	return encoded
}

func (o orderData) id() [32]byte { return crypto.Keccak256Hash(o.encode()) }

func (o orderData) order() onchainOrder {
	return onchainOrder{o.FillDeadline, orderDataTypeHash, o.encode()}
}

// word is an address in 32 bytes.
func word(address common.Address) [32]byte { return common.BytesToHash(address[:]) }

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
func (s *settlers) bridge(nonce int64) orderData {
	return orderData{
		Sender: word(s.origin.Account(user)), Recipient: word(common.HexToAddress("0x1234")),
		AmountIn: big.NewInt(1000), AmountOut: big.NewInt(990), SenderNonce: big.NewInt(nonce),
		OriginDomain: origin, DestinationDomain: destination, DestinationSettler: s.destinationSettler.Word(),
		FillDeadline: uint32(s.deadline.Unix()), Data: []byte{},
	}
}

// swap is an order on the origin alone.
func (s *settlers) swap(nonce int64) orderData {
	o := s.bridge(nonce)
	o.DestinationDomain, o.DestinationSettler = origin, s.originSettler.Word()
	return o
}

// open opens an order as its sender, with its input where that is native.
func (s *settlers) open(t *testing.T, o orderData) {
	t.Helper()
	s.origin.Send(t, user, nativeAmount(o.InputToken, o.AmountIn), s.originSettler, "open", o.order())
}

// nativeAmount is what a call must carry.
func nativeAmount(token [32]byte, amount *big.Int) int64 {
	if token != [32]byte{} {
		return 0
	}
	return amount.Int64()
}

// wantStatus fails the test if the order has another status at a settler.
func wantStatus(t *testing.T, c *contractstest.Chain, settler contractstest.Deployed, o orderData, want string) {
	t.Helper()
	got := contractstest.Read[[32]byte](t, c, settler, "orderStatus", o.id())
	if text := strings.TrimRight(string(got[:]), "\x00"); text != want {
		t.Errorf("status %q, want %q", text, want)
	}
}

func (s *settlers) wantStatus(t *testing.T, o orderData, atOrigin, atDestination string) {
	t.Helper()
	wantStatus(t, s.origin, s.originSettler, o, atOrigin)
	wantStatus(t, s.destination, s.destinationSettler, o, atDestination)
}

// deliver passes the message of the destination's settler on to the origin's.
func (s *settlers) deliver(t *testing.T, filled bool, orders ...orderData) {
	t.Helper()
	s.deliverFrom(t, destination, s.destinationSettler.Word(), filled, orders...)
}

func (s *settlers) deliverFrom(t *testing.T, domain uint32, settler [32]byte, filled bool, orders ...orderData) {
	t.Helper()
	var ids [][32]byte
	var data [][]byte
	for _, o := range orders {
		ids = append(ids, o.id())
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
