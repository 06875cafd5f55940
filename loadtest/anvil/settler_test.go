package anvil_test

import (
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/anvil"
)

// recording is what the reference settler did with some orders on two chains.
type recording struct {
	OrderDataType common.Hash
	Cases         []struct {
		Name      string
		OrderID   common.Hash
		OrderData hexutil.Bytes
		Steps     []recordedStep
	}
}

type recordedStep struct {
	Step, Chain string
	Transaction struct {
		From, To common.Address
		Value    *hexutil.Big
		Input    hexutil.Bytes
	}
	Receipt     anvil.Receipt
	OrderStatus struct{ Origin, Destination common.Hash }
}

const (
	sepolia, baseSepolia = 11155111, 84532
	// began is the time of the recording's blocks, ended is after the deadline of the order that is refunded.
	began, ended = 1798700000, 1798700606
)

// The accounts and tokens of the recording. The order of the smart account names it as its sender.
var (
	smartAccount = common.HexToAddress("0xCf7Ed3AccA5a467e9e704C703E8D87F634fB0Fc9")
	tokens       = map[uint64]common.Address{
		sepolia:     common.HexToAddress("0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"),
		baseSepolia: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
	}
)

// replayed is a chain of the recording with our settler in place of the reference settler.
type replayed struct {
	*anvil.Node
	settler anvil.Deployed
}

// replay starts a chain. Our settler gets the reference settler's address, since the same account deploys it after as many other
// contracts.
func replay(t *testing.T, chain uint64, contractsBefore int) replayed {
	t.Helper()
	n := anvil.Start(t, anvil.Config{ChainID: chain, Genesis: time.Unix(began, 0)})
	deployer, filler := n.Accounts[0], n.Accounts[3]
	for range contractsBefore {
		n.Deploy(t, deployer, anvil.Compiled(t, "SmartAccount"), deployer)
	}
	r := replayed{n, n.Deploy(t, deployer, anvil.Compiled(t, "Settler"), uint32(chain), false, new(big.Int))}
	token := n.Deploy(t, filler, anvil.Compiled(t, "TestToken"), "Test", "TEST", uint8(6), false)
	var code hexutil.Bytes
	n.Call(t, &code, "eth_getCode", token.Address, "latest")
	token.Address = tokens[chain]
	n.Call(t, nil, "anvil_setCode", token.Address, code)
	for _, account := range []common.Address{deployer, filler} {
		n.Execute(t, token.Transaction(t, account, "mint", account, big.NewInt(1e12)))
		n.Execute(t, token.Transaction(t, account, "approve", r.settler.Address, big.NewInt(1e12)))
	}
	n.Call(t, nil, "anvil_impersonateAccount", smartAccount)
	n.Call(t, nil, "anvil_setBalance", smartAccount, (*hexutil.Big)(big.NewInt(1e18)))
	return r
}

// The settler does what the reference settler did: the same calls succeed, and emit the same events byte for byte.
func TestSettler_Recording(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../core/chains/evm/testdata/recorded_chain.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded recording
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	origin, destination := replay(t, sepolia, 0), replay(t, baseSepolia, 1)
	chains := map[string]replayed{"eip155:11155111": origin, "eip155:84532": destination}
	receipts := map[common.Hash]anvil.Receipt{} // by the recorded hash, as one call settled two orders
	for n := range 4 {                          // all orders are opened, then all are filled or refunded, and so on
		for _, c := range recorded.Cases {
			if n >= len(c.Steps) || receipts[c.Steps[n].Receipt.Hash].Hash != (common.Hash{}) {
				continue
			}
			step, at := c.Steps[n], chains[c.Steps[n].Chain]
			var got anvil.Receipt
			switch step.Step {
			case "settled", "refunded":
				got = at.deliver(t, destination, receipts[c.Steps[n-1].Receipt.Hash])
			case "refund":
				at.PassTime(t, time.Unix(ended, 0))
				fallthrough
			default:
				got = at.repeat(t, recorded, c.OrderData, step)
			}
			receipts[step.Receipt.Hash] = got
			if diff := cmp.Diff(at.events(step.Receipt), at.events(got)); diff != "" || got.Status != step.Receipt.Status {
				t.Errorf("%s: %s: status %d, want %d; events (-recorded +ours):\n%s", c.Name, step.Step, got.Status, step.Receipt.Status, diff)
			}
		}
	}
	for _, c := range recorded.Cases {
		last := c.Steps[len(c.Steps)-1].OrderStatus
		for name, want := range map[string]common.Hash{"eip155:11155111": last.Origin, "eip155:84532": last.Destination} {
			got := anvil.Read[[32]byte](t, chains[name].Node, chains[name].settler, "orderStatus", c.OrderID)
			if want != got {
				t.Errorf("%s: %s: status %q", c.Name, name, strings.TrimRight(string(got[:]), "\x00"))
			}
		}
	}
}

// repeat sends a recorded transaction again. The smart account of the recording is another contract, so it calls the settler itself.
func (r replayed) repeat(t *testing.T, recorded recording, orderData []byte, step recordedStep) anvil.Receipt {
	t.Helper()
	tx := anvil.Transaction{
		From: step.Transaction.From, To: &step.Transaction.To, Value: step.Transaction.Value, Data: step.Transaction.Input, Gas: 2_000_000,
	}
	if step.Transaction.To == smartAccount {
		tx.From, tx.To = smartAccount, &r.settler.Address
		tx.Data = r.settler.Pack(t, "open", order{FillDeadline: fillDeadline(orderData), OrderDataType: recorded.OrderDataType, OrderData: orderData})
	}
	return r.Mined(t, r.Send(t, tx))
}

// deliver passes the message in the receipt of another chain on.
func (r replayed) deliver(t *testing.T, sender replayed, sent anvil.Receipt) anvil.Receipt {
	t.Helper()
	return r.Execute(t, r.settler.Delivery(t, r.Accounts[0], sender.settler, uint32(sender.ChainID), sent))
}

// event is what must be the same; addresses are the same too.
type event struct {
	Address common.Address
	Topics  []common.Hash
	Data    hexutil.Bytes
}

// events are those of the settler and the token. The recording also has those of the bridge.
func (r replayed) events(receipt anvil.Receipt) (all []event) {
	for _, l := range receipt.Logs {
		if l.Address == r.settler.Address || l.Address == tokens[r.ChainID] {
			all = append(all, event(l))
		}
	}
	return all
}

// order is OnchainCrossChainOrder.
type order struct {
	FillDeadline  uint32
	OrderDataType [32]byte
	OrderData     []byte
}

// fillDeadline is the eleventh field of order data, after the offset.
func fillDeadline(orderData []byte) uint32 {
	return uint32(new(big.Int).SetBytes(orderData[11*32 : 12*32]).Uint64())
}
