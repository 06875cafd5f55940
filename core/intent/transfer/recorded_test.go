package transfer_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/chains/evm"
	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/caip"
)

// The reference settler's orders on two chains, as a node told of them: whatever the order in which the receipts are read, each intent
// ends as its settlers say.
func TestMatch_RecordedChain(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../chains/evm/testdata/recorded_chain.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Cases []struct {
			Name      string
			OrderID   common.Hash
			OrderData hexutil.Bytes
			Steps     []struct {
				Step        string
				Chain       string
				Receipt     evm.Receipt
				OrderStatus struct{ Origin, Destination hexutil.Bytes }
			}
		}
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	if len(recorded.Cases) < 7 {
		t.Fatalf("%d cases", len(recorded.Cases))
	}
	for _, c := range recorded.Cases {
		if crypto.Keccak256Hash(c.OrderData) != c.OrderID {
			t.Fatalf("%s: the order id is not the hash of the order", c.Name)
		}
		intent := transfer.Intent{
			Type: transfer.Bridge, Status: transfer.Created, OrderID: c.OrderID, Deadline: noon.Add(time.Hour),
			Source:      transfer.Leg{Account: caip.AccountID{Chain: sepolia, Address: alice}},
			Destination: transfer.Leg{Account: caip.AccountID{Chain: baseSepolia, Address: bob}},
			Settlement:  transfer.Settlement{OriginSettler: settler, DestinationSettler: otherSettler},
		}
		var found []transfer.Transaction
		var status string
		for n := range c.Steps {
			step := c.Steps[len(c.Steps)-1-n] // newest first
			chain, err := caip.ParseChainID(step.Chain)
			if err != nil {
				t.Fatal(err)
			}
			for _, log := range step.Receipt.Logs {
				if seen, ok := intent.MatchLog(chain, log); ok {
					seen.Confirmed = true
					found = append(found, seen)
					if !intent.MatchesReceipt(seen, step.Receipt) {
						t.Errorf("%s: %s does not stand by its own receipt", c.Name, step.Step)
					}
				}
			}
			if step.Step == "open" {
				state, index := intent.Classify(transfer.Inclusion{Receipt: step.Receipt})
				if want := map[bool]transfer.State{true: transfer.Mined, false: transfer.Reverted}[step.Receipt.Succeeded]; state != want {
					t.Errorf("%s: the attempt is %s at log %d, want %s", c.Name, state, index, want)
				}
				if state == transfer.Reverted {
					found = append(found, transfer.Transaction{Role: transfer.RoleOpen, State: state, Confirmed: true, Hash: step.Receipt.TxHash})
				}
			}
			status += " " + strings.TrimRight(string(step.OrderStatus.Origin), "\x00") + " " + strings.TrimRight(string(step.OrderStatus.Destination), "\x00")
		}
		want := transfer.Filled
		switch {
		case strings.Contains(c.Name, "reverts"):
			want = transfer.Failed
		case strings.Contains(status, "REFUNDED"):
			want = transfer.Refunded
		}
		evaluate(t, &intent, found, noon)
		if intent.Status != want {
			t.Errorf("%s: %s, want %s", c.Name, intent.Status, want)
		}
		// Another intent's settlers are not asked.
		stranger := intent
		stranger.Settlement.OriginSettler, stranger.Settlement.DestinationSettler = alice, bob
		for _, step := range c.Steps {
			for _, log := range step.Receipt.Logs {
				if _, ok := stranger.MatchLog(sepolia, log); ok {
					t.Errorf("%s: an event of another settler matches", c.Name)
				}
			}
		}
	}
}

// Whatever a contract emits, nothing is found that the settler did not say, and nothing panics.
func FuzzParseSettlerEvent(f *testing.F) {
	for _, topic := range transfer.SettlerTopics {
		f.Add(topic.Bytes(), make([]byte, 64), 1)
		f.Add(topic.Bytes(), []byte{}, 2)
	}
	f.Fuzz(func(t *testing.T, topic, data []byte, topics int) {
		l := evm.Log{Data: data}
		for range topics % 5 {
			l.Topics = append(l.Topics, common.BytesToHash(topic))
		}
		e, ok := transfer.ParseSettlerEvent(l)
		if !ok {
			return
		}
		word := l.Topics[len(l.Topics)-1]
		if e.Role != transfer.RoleOpen {
			word = common.BytesToHash(data[:32])
		}
		if e.OrderID != word {
			t.Errorf("order %x of %+v", e.OrderID, l)
		}
	})
}
