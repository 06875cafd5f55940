package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/anvil"
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
	eventually(t, func() error { // what happened on a chain before it was first read is not known
		read := queryRow[int](t, s.Env().DatabaseURL, `SELECT count(*) FROM watched_chains WHERE read_at IS NOT NULL`)
		if read < len(chains) {
			return fmt.Errorf("%d of %d chains are read", read, len(chains))
		}
		return nil
	})
	return &chainStack{s, rpcFile}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// chainClient is an API client of an account of its own, which may ask often.
type chainClient struct {
	*client
	*chainStack
}

func (s *chainStack) client(t *testing.T) *chainClient {
	t.Helper()
	key := newPerson(t, s.Env().GatewayURL).newKey()
	execute(t, s.Env().DatabaseURL, `WITH key AS (UPDATE api_keys SET limit_requests = 1000000 WHERE id = $1 RETURNING account_id)
		UPDATE accounts SET limit_requests = 1000000, limit_period_seconds = 60 FROM key WHERE accounts.id = account_id`, key.ID)
	return s.clientOf(t, key.Key)
}

func (s *chainStack) clientOf(t *testing.T, key string) *chainClient {
	t.Helper()
	c := apiClient(t, key)
	c.base = s.Env().GatewayURL
	return &chainClient{c, s}
}

// walletTx is what these tests read of a transaction for wallets.
type walletTx struct {
	ChainID uint64
	From    common.Address
	Calls   struct{ Calls []anvil.Transaction }
	// Allowances have the calls that the transaction may need besides Calls.
	Allowances []struct {
		Reset struct {
			To   common.Address
			Data hexutil.Bytes
		}
	}
}

// chainRecord is what these tests read of an intent's record.
type chainRecord struct {
	ID, Type, Status, OrderID string
	Final, Refundable         bool
	Failure, Verification     *string
	Metadata                  struct{ Hash string }
	Order                     chainOrder
	Tx                        *walletTx
	Confirmations             *struct {
		Have, Need uint64
		Finalized  bool
	}
	Transactions []struct {
		Role, ChainID, State string
		Hash                 common.Hash
		BlockNumber          *uint64
	}
}

// String is the status, the failure and each transaction's role and state.
func (r chainRecord) String() string {
	text := r.Status
	if r.Failure != nil {
		text += " " + *r.Failure
	}
	for _, t := range r.Transactions {
		text += ", " + t.Role + " " + t.State
	}
	return text
}

// create records an intent, once core knows the chains.
func (c *chainClient) create(t *testing.T, request map[string]any) (r chainRecord) {
	t.Helper()
	eventually(t, func() error {
		a := c.do(http.MethodPost, "/v2/transfers", request)
		if a.Status != http.StatusCreated {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return json.Unmarshal(a.Body, &r)
	})
	return r
}

func (c *chainClient) read(t *testing.T, id string) chainRecord {
	t.Helper()
	return expect[chainRecord](t, c.do(http.MethodGet, "/v2/transfers/"+id, nil), http.StatusOK)
}

// report reports a transaction that was sent.
func (c *chainClient) report(t *testing.T, id string, hash common.Hash) {
	t.Helper()
	expect[chainRecord](t, c.do(http.MethodPost, "/v2/transfers/"+id+"/transaction", map[string]any{"hash": hash.Hex()}), http.StatusOK)
}

// awaitConfirmed is await for a transaction that other tests' blocks may have made final already.
func (c *chainClient) awaitConfirmed(t *testing.T, id string) {
	t.Helper()
	eventually(t, func() error {
		if r := c.read(t, id); r.Status != "confirmed" {
			return fmt.Errorf("the record of %s reads %q, want that it is confirmed", id, r)
		}
		return nil
	})
}

// await returns the record once it reads as wanted, as String has it.
func (c *chainClient) await(t *testing.T, id, want string) (r chainRecord) {
	t.Helper()
	eventually(t, func() error {
		if r = c.read(t, id); r.String() != want {
			return fmt.Errorf("the record of %s reads %q, want %q; confirmations %+v", id, r, want, r.Confirmations)
		}
		return nil
	})
	return r
}

// core runs a command of the built core that may ask the chains.
func (s *chainStack) core(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	return core(t, s.Stack, "", args, "CORE_RPC_FILE="+s.rpcFile)
}

// way is every status that an intent has had.
func (s *chainStack) way(t *testing.T, id string) string {
	t.Helper()
	return queryRow[string](t, s.Env().DatabaseURL, `SELECT string_agg(to_status, ' ' ORDER BY id) FROM events WHERE transfer_id = $1`, id)
}
