package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/anvil"
	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

const (
	// localFEE is a token of the local chains that the solver has no price of.
	localFEE = "0xEf8a97B2855FCb4445800a67Af9983f18E9c0B4D"
	// leastSeconds is the minDeadline of the local chains here: the solver's window of 90 s, its finality, and time to send.
	leastSeconds = 150
)

// A solver with the manners of the framework's own judges an order once, eight blocks after its opening, leaves it alone within 90 s of its
// deadline, pays half a hundredth less than it has quoted, and answers 500 to a token that it does not know.
func TestSolverManners(t *testing.T) {
	t.Parallel()
	s := startUnfriendly(t)
	client := s.client(t)
	t.Run("a token that the solver answers 500 to closes it to nobody", func(t *testing.T) {
		for range 3 {
			other := s.client(t)
			for range 4 {
				_, err := other.Quotes.Create(t.Context(), localQuote(localFEE))
				if !errors.Is(err, intents.CodeNoQuote) {
					t.Fatalf("a token without a price: %v", err)
				}
			}
		}
		if got := must(client.Quotes.Create(t.Context(), localQuote(localUSDC)))(t); len(got.Quotes) != 2 || len(got.Failures) > 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a deadline within the solver's window is refused", func(t *testing.T) {
		near := body(onLocal(31337, alice), onLocal(31337, localUSDC), "1000000", onLocal(31338, bob), onLocal(31338, localUSDC), "900000")
		near.Deadline = time.Now().Add((leastSeconds - 5) * time.Second)
		if _, err := client.Transfers.Create(t.Context(), near); !errors.Is(err, intents.CodeInvalidDeadline) {
			t.Errorf("%v", err)
		}
		near.Deadline = time.Now().Add((leastSeconds + 2) * time.Second)
		made := client.create(t, near)
		s.send(t, made.Tx)
		client.wait(t, made.ID, intents.StatusFilled)
	})
	t.Run("an order with the reserve is filled, one without it is refunded", func(t *testing.T) {
		stranded, filled := client.quoted(t, "bare"), client.quoted(t, "reserved")
		s.send(t, stranded.Tx)
		s.send(t, filled.Tx)
		client.wait(t, filled.ID, intents.StatusFilled)
		if now := must(client.Transfers.Get(t.Context(), stranded.ID))(t); now.Status != intents.StatusConfirmed {
			t.Errorf("the other one is %s", now.Status)
		}
		timer := time.NewTimer(time.Until(time.Unix(stranded.Order.Expires+2, 0)))
		defer timer.Stop()
		<-timer.C
		var refund *intents.Refund
		asynctest.Succeeds(t, func() (err error) {
			refund, err = client.Transfers.Refund(t.Context(), stranded.ID)
			return err
		})
		s.send(t, &refund.Tx)
		client.wait(t, stranded.ID, intents.StatusRefunded)
	})
}

func onLocal(chain int, address string) string { return fmt.Sprintf("eip155:%d:%s", chain, address) }

// localQuote asks what a dollar of a token brings on the other chain, of as short a deadline as the service takes.
func localQuote(token string) intents.CreateQuotes {
	return intents.CreateQuotes{
		Source:      intents.SourceRequest{Account: onLocal(31337, alice), Token: onLocal(31337, token), Amount: "1000000"},
		Destination: intents.DestinationRequest{Account: onLocal(31338, bob), Token: onLocal(31338, localUSDC)},
		Deadline:    time.Now().Add((leastSeconds + 30) * time.Second),
	}
}

// quoted makes an intent of a provider's quote.
func (c *chainClient) quoted(t *testing.T, provider string) *intents.Transfer {
	t.Helper()
	question := localQuote(localUSDC)
	question.Providers = []string{provider}
	quotes := must(c.Quotes.Create(t.Context(), question))(t).Quotes
	return must(c.Transfers.Create(t.Context(), intents.CreateTransfer{QuoteID: quotes[0].ID}))(t)
}

// send sends the calls of a transaction from its unlocked account.
func (s *chainStack) send(t *testing.T, tx *intents.Transaction) {
	t.Helper()
	node := &anvil.Node{ChainID: 31337, URL: s.Env().LocalChains[0].RPCURL}
	for _, call := range tx.Calls.Calls {
		to := common.HexToAddress(call.To)
		node.Execute(t, anvil.Transaction{From: common.HexToAddress(tx.From), To: &to, Data: hexutil.MustDecode(call.Data)})
	}
}

// startUnfriendly starts a stack whose solver has these manners. Its chains have a minDeadline, and the solver is two providers of quotes, of
// which one has a reserve.
func startUnfriendly(t *testing.T) *chainStack {
	t.Helper()
	log := &asynctest.Buffer{}
	config := withDefaults(stack.Config{
		LocalChains: true, Data: t.TempDir(), Log: log,
		ChainsArgs: []string{"-judge-once", "-min-expiry", "90s", "-finality", "8", "-fail-unsupported", "-price-move", "50"},
	})
	config.Binaries = "" // the shared ones have no local chains
	s := must(stack.Start(t.Context(), config))(t)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("the stack's log:\n" + log.String())
		}
	})
	chains := must(os.ReadFile(filepath.Join(config.Data, "local-chains.json")))(t)
	mustCore(t, s, strings.ReplaceAll(string(chains), `"claimPeriod":15`, fmt.Sprintf(`"claimPeriod":15,"minDeadline":%d`, leastSeconds)), "chains", "import", "-")
	file := filepath.Join(config.Data, "quotes.json")
	var providers []map[string]any
	if err := json.Unmarshal(must(os.ReadFile(file))(t), &providers); err != nil {
		t.Fatal(err)
	}
	bare := providers[0]
	reserved := maps.Clone(bare)
	bare["name"], reserved["name"], reserved["reserveBps"] = "bare", "reserved", 100
	if err := os.WriteFile(file, encode(t, []any{bare, reserved}), 0o600); err != nil {
		t.Fatal(err)
	}
	var core string
	for _, p := range s.Env().Processes {
		if strings.HasPrefix(p.Name, "core") {
			core = p.Name
		}
	}
	if err := s.Restart(t.Context(), core); err != nil {
		t.Fatal(err)
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(localStart); ; <-ticker.C { // what happened on a chain before it was first read is not known
		if system.QueryRow[int](t, s.Env().DatabaseURL, `SELECT count(*) FROM watched_chains WHERE read_at IS NOT NULL AND chain_id LIKE 'eip155:3133_'`) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the local chains are not read")
		}
	}
	return &chainStack{Stack: s}
}
