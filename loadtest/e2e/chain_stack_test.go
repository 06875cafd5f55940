package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/anvil"
	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

const (
	// depth is the confirmations of all chains.
	depth = 3
	// claimPeriod is how many seconds after their deadline orders can be refunded.
	claimPeriod = 15
	// tokens is what each account gets of each token.
	tokens = 1_000_000
)

// evmChain is a chain with the contracts of these tests.
type evmChain struct {
	*anvil.Node
	input, output, oracle anvil.Deployed
	// token is an ordinary one, and tether refuses to change an allowance that is not zero.
	token, tether anvil.Deployed
	finality      string
	// used is how many accounts tests have taken.
	used atomic.Int32
}

// newChain starts a node. Its last account deploys the contracts and owns the oracle.
func newChain(t *testing.T, id uint64, finality string) *evmChain {
	t.Helper()
	n := anvil.Start(t, anvil.Config{ChainID: id, SlotsInAnEpoch: 2, Accounts: 40})
	c := &evmChain{Node: n, finality: finality}
	c.token = n.Deploy(t, c.owner(), anvil.Compiled(t, "TestToken"), "Test Dollar", "TUSD", uint8(6), false)
	c.tether = n.Deploy(t, c.owner(), anvil.Compiled(t, "TestTether"), "Test Tether", "TUSDT", uint8(6))
	c.input = n.Deploy(t, c.owner(), anvil.Compiled(t, "InputSettlerEscrow"))
	c.output = n.Deploy(t, c.owner(), anvil.Compiled(t, "OutputSettlerSimple"))
	c.oracle = n.Deploy(t, c.owner(), anvil.Compiled(t, "OwnedOracle"), c.owner())
	return c
}

func (c *evmChain) owner() common.Address { return c.Accounts[len(c.Accounts)-1] }

// account is one with tokens that no other test uses.
func (c *evmChain) account(t *testing.T) common.Address {
	t.Helper()
	account := c.Accounts[c.used.Add(1)-1]
	for _, token := range []anvil.Deployed{c.token, c.tether} {
		c.Execute(t, token.Transaction(t, c.owner(), "mint", account, big.NewInt(tokens)))
	}
	return account
}

// at is an address of the chain as the API writes it.
func (c *evmChain) at(address common.Address) string { return c.name() + ":" + address.Hex() }

func (c *evmChain) native() string { return c.name() + ":" + nativeToken }

func (c *evmChain) name() string { return fmt.Sprintf("eip155:%d", c.ChainID) }

// payment is a request for a transfer of a token, or of the native asset, from an account to the recipient.
func (c *evmChain) payment(account common.Address, asset string) intents.CreateTransfer {
	return body(c.at(account), asset, sent, c.at(recipient), "", "")
}

// order is a request for a swap or bridge to another asset for the recipient.
func (c *evmChain) order(account common.Address, asset string, to *evmChain, wanted string) intents.CreateTransfer {
	return body(c.at(account), asset, sent, to.at(recipient), wanted, received)
}

// definition is the chain as operators import it, with these deployments.
func (c *evmChain) definition(settlements ...map[string]any) map[string]any {
	return map[string]any{
		"chainId": c.name(), "name": c.name(), "environment": "test",
		"nativeCurrency": map[string]any{"name": "Ether", "symbol": "ETH", "decimals": 18},
		"confirmations":  depth, "finality": c.finality, "blockTimeMs": 200, "settlements": settlements,
	}
}

// settlement is the deployment of the chain's contracts.
func (c *evmChain) settlement() map[string]any {
	return map[string]any{
		"scheme": "oif-v1/StandardOrder", "deployment": "tests", "inputSettler": c.input.Address, "outputSettler": c.output.Address,
		"oracle": c.oracle.Address, "claimPeriod": claimPeriod, "native": true,
	}
}

// chainStack is a service that watches chains.
type chainStack struct {
	*stack.Stack
	rpcFile string
}

// newChainStack starts a service with these chains, which are imported and have providers.
func newChainStack(t *testing.T, chains ...*evmChain) *chainStack {
	t.Helper()
	providers, list, tokenList := map[string]any{}, []any{}, []any{}
	for _, c := range chains {
		providers[c.name()] = []any{map[string]any{"url": c.URL, "requestsPerSecond": 1000}}
		list = append(list, c.definition(c.settlement()))
		tokenList = append(tokenList,
			map[string]any{"chainId": c.ChainID, "address": nativeToken, "name": "Ether", "symbol": "ETH", "decimals": 18},
			map[string]any{"chainId": c.ChainID, "address": c.token.Address.Hex(), "name": "Test Dollar", "symbol": "TUSD", "decimals": 6},
			map[string]any{"chainId": c.ChainID, "address": c.tether.Address.Hex(), "name": "Test Tether", "symbol": "TUSDT", "decimals": 6})
	}
	rpcFile := filepath.Join(t.TempDir(), "rpc.json")
	if err := os.WriteFile(rpcFile, encode(t, providers), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := startStack(t, stack.Config{CoreEnv: []string{"CORE_RPC_FILE=" + rpcFile, "CORE_CHAIN_TICK=200ms"}})
	mustCore(t, s, string(encode(t, map[string]any{"chains": list})), "chains", "import", "-")
	mustCore(t, s, string(encode(t, map[string]any{"name": "Tests", "tokens": tokenList})), "tokens", "import", "-")
	asynctest.Succeeds(t, func() error { // what happened on a chain before it was first read is not known
		read := system.QueryRow[int](t, s.Env().DatabaseURL, `SELECT count(*) FROM watched_chains WHERE read_at IS NOT NULL`)
		if read < len(chains) {
			return fmt.Errorf("%d of %d chains are read", read, len(chains))
		}
		return nil
	})
	return &chainStack{s, rpcFile}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text := must(json.Marshal(value))(t)
	return text
}

// chainClient is an API client of an account of its own, which may ask often.
type chainClient struct {
	*intents.Client
	*chainStack
}

func (s *chainStack) client(t *testing.T) *chainClient {
	t.Helper()
	key := newPerson(t, s.Env().GatewayURL).newKey()
	system.Execute(t, s.Env().DatabaseURL, `WITH key AS (UPDATE api_keys SET limit_requests = 1000000 WHERE id = $1 RETURNING account_id)
		UPDATE accounts SET limit_requests = 1000000, limit_period_seconds = 60 FROM key WHERE accounts.id = account_id`, key.ID)
	return &chainClient{apiClient(t, s.Env().GatewayURL, key.Key), s}
}

func (c *chainClient) create(t *testing.T, request intents.CreateTransfer) *intents.Transfer {
	t.Helper()
	return create(t, c.Client, request)
}

// report reports a transaction that was sent.
func (c *chainClient) report(t *testing.T, id string, hash common.Hash) {
	t.Helper()
	must(c.Transfers.Report(t.Context(), id, hash.Hex()))(t)
}

// wait waits until the intent has a status.
func (c *chainClient) wait(t *testing.T, id string, until intents.TransferStatus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r := must(c.Transfers.Wait(ctx, id, intents.WaitOptions{Until: until}))(t); r.Status != until {
		t.Fatalf("%s ended as %q, want %q", id, summary(r), until)
	}
}

// await returns the intent once its summary is as wanted.
func (c *chainClient) await(t *testing.T, id, want string) (r *intents.Transfer) {
	t.Helper()
	asynctest.Succeeds(t, func() error {
		if r = must(c.Transfers.Get(t.Context(), id))(t); summary(r) != want {
			return fmt.Errorf("%s is %q, want %q; confirmations %+v", id, summary(r), want, r.Confirmations)
		}
		return nil
	})
	return r
}

// summary is the status of an intent, its failure, and each transaction's role and state.
func summary(r *intents.Transfer) string {
	text := string(r.Status)
	if r.Failure != nil {
		text += " " + string(*r.Failure)
	}
	for _, t := range r.Transactions {
		text += ", " + string(t.Role) + " " + string(t.State)
	}
	return text
}

// awaitHistory follows the feed until it has told that an intent had these statuses, and no others.
func (c *chainClient) awaitHistory(t *testing.T, id, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var statuses []string
	for page, err := range c.Events.Follow(ctx, intents.EventQuery{}) {
		if err != nil {
			t.Fatalf("%s was %q, want %q: %v", id, statuses, want, err)
		}
		for _, event := range page.Events {
			if event.Transfer.ID == id {
				statuses = append(statuses, string(event.Transfer.To))
			}
		}
		if strings.Join(statuses, " ") == want {
			return
		}
	}
}

// core runs a command of the built core that may ask the chains.
func (s *chainStack) core(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	return core(t, s.Stack, "", args, "CORE_RPC_FILE="+s.rpcFile)
}
