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
// needs a node that reorganizes its chain, names safe and final blocks, sets its clock, or mines on demand; everything else is followed on the local chains.
func TestChains(t *testing.T) {
	t.Parallel()
	a, b, hasty, moody := newChain(t, 31337, "depth"), newChain(t, 31338, "depth"), newChain(t, 31339, "depth"), newChain(t, 31340, "depth")
	safe, finalized := newChain(t, 31342, "safe"), newChain(t, 31343, "finalized")
	s := newChainStack(t, a, b, hasty, moody, safe, finalized)
	if out, err := s.core(t, "chains", "check"); err != nil {
		t.Errorf("core chains check: %v\n%s", err, out)
	}
	t.Run("console sends with a wallet", func(t *testing.T) { t.Parallel(); walkSend(t, s, a, b) })
	t.Run("bridge", func(t *testing.T) { t.Parallel(); bridge(t, s, a, b) })
	t.Run("allowance", func(t *testing.T) { t.Parallel(); resetsAllowance(t, s, a, b) })
	t.Run("swap", func(t *testing.T) { t.Parallel(); swap(t, s, a) })
	t.Run("refunds", func(t *testing.T) { t.Parallel(); refunds(t, s, hasty, b); keepsSettlement(t, s, hasty) })
	t.Run("sign-in of a smart account", func(t *testing.T) { t.Parallel(); smartAccountSignsIn(t, s, a) })
	t.Run("reorganizations", func(t *testing.T) {
		t.Parallel()
		losesFill(t, s, b, moody)
		reorganizes(t, s, moody, b)
		stopsAndResumes(t, s, moody)
	})
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
	event := c.input.ABI.Events["Open"].ID
	for _, l := range receipt.Logs {
		if l.Address == c.input.Address && l.Topics[0] == event && l.Topics[1].Hex() == r.OrderID {
			return
		}
	}
	t.Fatalf("the input settler has not opened %s: %+v", r.OrderID, receipt)
}

// A bridge, from its birth to its end. The simulation of its transaction agrees with what becomes of it, and fills of other outputs, which
// anybody can have the output settler report for any order, change nothing.
func bridge(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	poor := client.create(t, body(from.at(from.account(t)), from.at(from.token.Address), strconv.Itoa(tokens+1), from.at(common.HexToAddress(recipient)), "", ""))
	if checked := client.preflight(t, poor.ID, "balance"); checked.ok || checked.gas != "" {
		t.Errorf("more than the account has: %+v", checked)
	}
	r := client.create(t, body(from.at(from.account(t)), from.at(from.token.Address), sent, to.at(common.HexToAddress(recipient)), to.native(), received))
	if checked := client.preflight(t, r.ID, "allowance"); checked.ok || checked.gas != "" || checked.simulation != approvedFirst {
		t.Errorf("without the allowance: %+v", checked)
	}
	approve, open := r.Tx.Calls.Calls[0], r.Tx.Calls.Calls[1]
	approve.From, open.From = r.Tx.From, r.Tx.From
	from.Execute(t, approve)
	checked := client.preflight(t, r.ID, "simulation")
	limit, err := strconv.ParseUint(checked.gas, 10, 64)
	if !checked.ok || err != nil {
		t.Fatalf("with the allowance: %+v", checked)
	}
	// The other orders that come and go at the settler change what a transaction costs, so wallets add a margin.
	open.Gas = hexutil.Uint64(limit + limit/4)
	receipt := from.Execute(t, open)
	from.opened(t, r, receipt)
	client.report(t, r.ID, receipt.Hash)
	from.Mine(t, depth)
	client.awaitConfirmed(t, r.ID)
	expect[failure](t, client.do(http.MethodGet, "/v2/transfers/"+r.ID+"/preflight", nil), http.StatusConflict)

	attacker := to.account(t)
	stolen, less, padded := r.output(t), r.output(t), r.output(t)
	stolen.Recipient, less.Amount, padded.Context = solverID(attacker), big.NewInt(1), []byte{0}
	for _, other := range []anvil.MandateOutput{stolen, less, padded} {
		to.fill(t, attacker, r.OrderID, other)
	}
	to.Mine(t, 2*depth)
	solver := to.account(t)
	fill := to.fill(t, solver, r.OrderID, r.output(t))
	to.Mine(t, 2*depth)
	from.Mine(t, depth)
	filled := client.await(t, r.ID, "filled, open finalized, fill finalized")
	if got := filled.Transactions[1].Hash; got != fill.Hash {
		t.Errorf("filled by %s, want %s", got, fill.Hash)
	}
	from.Execute(t, from.oracle.Attestation(t, from.owner(), fill))
	from.claim(t, r, solver, to.output.Event(t, fill, "OutputFilled"))
	from.Mine(t, 2*depth)
	from.expectStatus(t, r, orderClaimed)
	client.await(t, r.ID, filled.String())
	if way := s.way(t, r.ID); way != "created submitted confirmed filled" {
		t.Errorf("went %q", way)
	}
	if !filled.Final || filled.Transactions[0].ChainID != from.name() || filled.Transactions[1].ChainID != to.name() {
		t.Errorf("record %+v", filled)
	}
}

// preflightResult is a check of an intent's transaction that decides whether it can be sent, and what the last one, the simulation, says.
// gas is empty where it would fail.
type preflightResult struct {
	ok                      bool
	detail, gas, simulation string
}

// approvedFirst is what a simulation says that the node has run by eth_simulateV1.
const approvedFirst = "The approval and then the transaction succeed at the newest block."

func (c *chainClient) preflight(t *testing.T, id, check string) preflightResult {
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
		if each.Name == check && each.OK == answer.OK {
			result := preflightResult{ok: each.OK, detail: each.Detail, simulation: answer.Checks[len(answer.Checks)-1].Detail}
			if answer.Gas != nil {
				result.gas = *answer.Gas
			}
			return result
		}
	}
	t.Fatalf("preflight %+v, want that %s decides", answer, check)
	return preflightResult{}
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
