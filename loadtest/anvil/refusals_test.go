package anvil_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/loadtest/anvil"
)

const (
	domain, otherDomain = 31337, 31338
	messageFee          = 5
)

// terms are the parts of order data that these tests vary. The order is native in and out.
type terms struct {
	sender, recipient common.Address
	nonce             int64
	origin            int64
	destination       int64
	settler           common.Address
	deadline          time.Time
}

func (o terms) encode() []byte {
	var encoded []byte
	for _, word := range []*big.Int{
		big.NewInt(0x20),
		new(big.Int).SetBytes(o.sender[:]), new(big.Int).SetBytes(o.recipient[:]), new(big.Int), new(big.Int),
		big.NewInt(1000), big.NewInt(990), big.NewInt(o.nonce), big.NewInt(o.origin), big.NewInt(o.destination),
		new(big.Int).SetBytes(o.settler[:]), big.NewInt(o.deadline.Unix()), big.NewInt(0x180), new(big.Int),
	} {
		encoded = append(encoded, common.BigToHash(word).Bytes()...)
	}
	return encoded
}

func (o terms) id() [32]byte { return crypto.Keccak256Hash(o.encode()) }

func (o terms) order() order {
	orderDataType := [32]byte(hexutil.MustDecode("0x08d75650babf4de09c9273d48ef647876057ed91d4323f8a2e3ebc2cd8a63b5e"))
	return order{uint32(o.deadline.Unix()), orderDataType, o.encode()}
}

func wei(n int64) *hexutil.Big { return (*hexutil.Big)(big.NewInt(n)) }

// What the recording does not have: a settler that fills orders on its own chain, and calls that a settler refuses.
func TestSettler_SameChain(t *testing.T) {
	t.Parallel()
	n := anvil.Start(t, anvil.Config{ChainID: domain})
	user, filler, owner := n.Accounts[0], n.Accounts[1], n.Accounts[2]
	recipient := common.HexToAddress("0x1234")
	settler := n.Deploy(t, owner, anvil.Compiled(t, "Settler"), uint32(domain), true, big.NewInt(messageFee))
	send := func(from common.Address, value int64, method string, args ...any) anvil.Transaction {
		tx := settler.Transaction(t, from, method, args...)
		tx.Value = wei(value)
		return tx
	}
	refuse := func(tx anvil.Transaction, reason string) {
		t.Helper()
		selector := hexutil.Encode(crypto.Keccak256([]byte(reason + "()"))[:4])
		if err := n.Try(t.Context(), nil, "eth_call", tx, "latest"); err == nil || !strings.Contains(err.Error(), selector) {
			t.Errorf("%v, want %s, %s", err, reason, selector)
		}
	}
	status := func(o terms, want string) {
		t.Helper()
		got := anvil.Read[[32]byte](t, n, settler, "orderStatus", o.id())
		if text := strings.TrimRight(string(got[:]), "\x00"); text != want {
			t.Errorf("status %q, want %q", text, want)
		}
	}
	deadline := time.Now().Add(time.Hour)
	swap := terms{user, recipient, 1, domain, domain, settler.Address, deadline}
	unfilled, bridge, inbound := swap, swap, swap
	unfilled.nonce = 2
	bridge.nonce, bridge.destination = 3, otherDomain
	inbound.nonce, inbound.origin = 4, otherDomain
	receiver := common.BytesToHash(filler[:]).Bytes()

	for _, o := range []terms{swap, unfilled, bridge} {
		refuse(send(user, 999, "open", o.order()), "InvalidNativeAmount")
		n.Execute(t, send(user, 1000, "open", o.order()))
		refuse(send(user, 1000, "open", o.order()), "InvalidNonce")
		status(o, "OPENED")
	}
	refuse(send(user, 1000, "open", inbound.order()), "InvalidOrderOrigin")
	n.Execute(t, send(user, 0, "invalidateNonces", big.NewInt(5)))
	invalidated := swap
	invalidated.nonce = 5
	refuse(send(user, 1000, "open", invalidated.order()), "InvalidNonce")

	refuse(send(filler, 990, "fill", swap.id(), unfilled.encode(), receiver), "InvalidOrderId")
	refuse(send(filler, 990, "fill", bridge.id(), bridge.encode(), receiver), "InvalidOrderDomain")
	refuse(send(filler, 989, "fill", swap.id(), swap.encode(), receiver), "InvalidNativeAmount")
	n.Execute(t, send(filler, 990, "fill", swap.id(), swap.encode(), receiver))
	status(swap, "SETTLED")
	refuse(send(filler, 990, "fill", swap.id(), swap.encode(), receiver), "InvalidOrderStatus")
	n.Execute(t, send(filler, 990, "fill", inbound.id(), inbound.encode(), receiver))
	status(inbound, "FILLED")
	refuse(send(filler, messageFee, "settle", [][32]byte{bridge.id()}), "InvalidOrderStatus")
	refuse(send(filler, messageFee-1, "settle", [][32]byte{inbound.id()}), "InvalidNativeAmount")
	n.Execute(t, send(filler, messageFee, "settle", [][32]byte{inbound.id()}))

	refuse(send(filler, messageFee, "refund", []order{unfilled.order()}), "OrderFillNotExpired")
	stranger := [32]byte(common.HexToHash("0xbad"))
	refuse(send(filler, 0, "deliver", uint32(otherDomain), stranger, false, [][32]byte{bridge.id()}, [][]byte{}), "NotOwner")
	n.Execute(t, send(owner, 0, "deliver", uint32(otherDomain), stranger, false, [][32]byte{bridge.id()}, [][]byte{}))
	status(bridge, "OPENED")

	n.PassTime(t, deadline.Add(time.Second))
	refuse(send(filler, 990, "fill", unfilled.id(), unfilled.encode(), receiver), "OrderFillExpired")
	refuse(send(filler, messageFee, "refund", []order{inbound.order()}), "InvalidOrderStatus")
	n.Execute(t, send(filler, messageFee, "refund", []order{unfilled.order()}))
	status(unfilled, "REFUNDED")
	from := [32]byte(common.BytesToHash(settler.Address[:]))
	n.Execute(t, send(owner, 0, "deliver", uint32(otherDomain), from, false, [][32]byte{bridge.id(), swap.id()}, [][]byte{}))
	status(bridge, "REFUNDED")
	status(swap, "SETTLED")

	var held hexutil.Big
	n.Call(t, &held, "eth_getBalance", settler.Address, "latest")
	if held.ToInt().Sign() != 0 {
		t.Errorf("%s wei are left in the settler", held.ToInt())
	}
	n.Call(t, &held, "eth_getBalance", recipient, "latest")
	if held.ToInt().Int64() != 2*990 {
		t.Errorf("the recipient has %s wei", held.ToInt())
	}
}
