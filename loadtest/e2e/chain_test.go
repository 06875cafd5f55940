package e2e_test

import (
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/anvil"
)

const (
	sent, received = "1000", "990"
	recipient      = "0x000000000000000000000000000000000000dEaD"
)

// Intents on real chains: clients send the transactions that the API gives them, and the records follow what becomes of them. What is shown
// needs a node that reorganizes its chain, names safe and final blocks, or mines on demand; everything else is followed on the local chains.
func TestChains(t *testing.T) {
	t.Parallel()
	a, b, moody := newChain(t, 31337, "depth"), newChain(t, 31338, "depth"), newChain(t, 31340, "depth")
	safe, finalized := newChain(t, 31342, "safe"), newChain(t, 31343, "finalized")
	s := newChainStack(t, a, b, moody, safe, finalized)
	if out, err := s.core(t, "chains", "check"); err != nil {
		t.Errorf("core chains check: %v\n%s", err, out)
	}
	t.Run("console sends with a wallet", func(t *testing.T) { t.Parallel(); walkSend(t, s, a, b) })
	t.Run("bridge", func(t *testing.T) { t.Parallel(); bridge(t, s, a, b) })
	t.Run("sign-in of a smart account", func(t *testing.T) { t.Parallel(); smartAccountSignsIn(t, s, a) })
	t.Run("reorganizations", func(t *testing.T) { t.Parallel(); reorganizes(t, s, moody, b); stopsAndResumes(t, s, moody) })
	t.Run("tag safe", func(t *testing.T) { t.Parallel(); followsTag(t, s, safe, 2) })
	t.Run("tag finalized", func(t *testing.T) { t.Parallel(); followsTag(t, s, finalized, 4) })
}

// sendCalls sends the transactions of a record as a wallet that cannot batch, and returns the last.
func (c *evmChain) sendCalls(t *testing.T, r chainRecord) anvil.Receipt {
	t.Helper()
	var receipt anvil.Receipt
	for _, call := range r.Tx.Calls.Calls {
		call.From = r.Tx.From
		receipt = c.Execute(t, call)
	}
	return receipt
}

// opened wants that the order that a transaction opened has the intent's order id.
func (c *evmChain) opened(t *testing.T, r chainRecord, receipt anvil.Receipt) {
	t.Helper()
	event := c.settler.ABI.Events["Open"].ID
	for _, l := range receipt.Logs {
		if l.Address == c.settler.Address && l.Topics[0] == event && l.Topics[1].Hex() == r.OrderID {
			return
		}
	}
	t.Fatalf("the settler has not opened %s: %+v", r.OrderID, receipt)
}

// A bridge, from its birth to its end. The simulation of its transaction agrees with what becomes of it.
func bridge(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	poor := client.create(t, body(from.at(from.account(t)), from.at(from.token.Address), strconv.Itoa(tokens+1), from.at(common.HexToAddress(recipient)), "", ""))
	if ok, gas := client.preflight(t, poor.ID, "balance"); ok || gas != "" {
		t.Errorf("more than the account has: %v, gas %s", ok, gas)
	}
	r := client.create(t, body(from.at(from.account(t)), from.at(from.token.Address), sent, to.at(common.HexToAddress(recipient)), to.native(), received))
	if ok, gas := client.preflight(t, r.ID, "allowance"); ok || gas != "" {
		t.Errorf("without the allowance: %v, gas %s", ok, gas)
	}
	approve, open := r.Tx.Calls.Calls[0], r.Tx.Calls.Calls[1]
	approve.From, open.From = r.Tx.From, r.Tx.From
	from.Execute(t, approve)
	ok, gas := client.preflight(t, r.ID, "simulation")
	limit, err := strconv.ParseUint(gas, 10, 64)
	if !ok || err != nil {
		t.Fatalf("with the allowance: %v, gas %q", ok, gas)
	}
	// The other orders that come and go at the settler change what a transaction costs, so wallets add a margin.
	open.Gas = hexutil.Uint64(limit + limit/4)
	receipt := from.Execute(t, open)
	from.opened(t, r, receipt)
	client.report(t, r.ID, receipt.Hash)
	from.Mine(t, depth)
	client.awaitConfirmed(t, r.ID)
	expect[failure](t, client.do(http.MethodGet, "/v2/transfers/"+r.ID+"/preflight", nil), http.StatusConflict)

	filler := to.account(t)
	fill := to.settler.Transaction(t, filler, "fill", [32]byte(common.HexToHash(r.OrderID)), []byte(r.Order.OrderData), common.BytesToHash(filler[:]).Bytes())
	fill.Value = (*hexutil.Big)(big.NewInt(990))
	to.Execute(t, fill)
	to.Mine(t, 2*depth)
	from.Mine(t, depth)
	filled := client.await(t, r.ID, "filled, open finalized, fill finalized")
	settle := to.settler.Transaction(t, to.owner(), "settle", [][32]byte{common.HexToHash(r.OrderID)})
	settle.Value = (*hexutil.Big)(big.NewInt(messageFee))
	from.Execute(t, from.settler.Delivery(t, from.owner(), to.settler, uint32(to.ChainID), to.Execute(t, settle)))
	from.Mine(t, 2*depth)
	if got := from.status(t, r.OrderID) + " " + to.status(t, r.OrderID); got != "SETTLED FILLED" {
		t.Errorf("the settlers say %q", got)
	}
	client.await(t, r.ID, filled.String())
	if way := s.way(t, r.ID); way != "created submitted confirmed filled" {
		t.Errorf("went %q", way)
	}
	if !filled.Final || filled.Transactions[0].ChainID != from.name() || filled.Transactions[1].ChainID != to.name() {
		t.Errorf("record %+v", filled)
	}
}

// preflight reads whether a check of an intent's transaction holds, and the gas, empty where the transaction would fail.
func (c *chainClient) preflight(t *testing.T, id, check string) (ok bool, gas string) {
	t.Helper()
	answer := expect[struct {
		OK     bool
		Checks []struct {
			Name, Detail string
			OK           bool
		}
		Gas *string
	}](t, c.do(http.MethodGet, "/v2/transfers/"+id+"/preflight", nil), http.StatusOK)
	for _, each := range answer.Checks {
		if each.Name == check && each.OK == answer.OK { // the one that decides
			if answer.Gas != nil {
				gas = *answer.Gas
			}
			return answer.OK, gas
		}
	}
	t.Fatalf("preflight %+v, want that %s decides", answer, check)
	return false, ""
}

// A smart account signs in as viem has it sign, before it is deployed (ERC-6492) and after (ERC-1271), and is of its chain alone.
func smartAccountSignsIn(t *testing.T, s *chainStack, c *evmChain) {
	t.Helper()
	project := newNodeProject(t)
	factory := c.Deploy(t, c.owner(), anvil.Compiled(t, "SmartAccountFactory"))
	project.env = append(slices.Clip(project.env), "BASE_URL="+s.Env().GatewayURL, "PUBLIC_URL="+s.Env().GatewayURL,
		"RPC_URL="+c.URL, "FACTORY="+factory.Address.Hex(), "SENDER="+c.owner().Hex())
	if diff := cmp.Diff("signsInUndeployed\nsignsInDeployed\nisRefused\n", project.run(t, "node", "smart-account.mjs")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
