package e2e_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/loadtest/anvil"
)

// swap fills a swap of native tokens before it is opened, and its solver claims it on its own chain.
func swap(t *testing.T, s *chainStack, c *evmChain) {
	t.Helper()
	client := s.client(t)
	r := client.create(t, body(c.at(c.account(t)), c.native(), sent, c.at(common.HexToAddress(recipient)), c.at(c.token.Address), received))
	if r.Type != "swap" || len(r.Tx.Allowances) > 0 {
		t.Errorf("%s with the allowances %+v", r.Type, r.Tx.Allowances)
	}
	solver := c.account(t)
	output := r.output(t)
	c.Execute(t, c.token.Transaction(t, solver, "approve", c.output.Address, output.Amount))
	fill := c.fill(t, solver, r.OrderID, output)
	c.Mine(t, 2*depth)
	c.opened(t, r, c.sendCalls(t, r))
	c.Mine(t, 2*depth)
	eventually(t, func() error { // either can be seen first
		if r = client.read(t, r.ID); r.Status != "filled" || !r.Final || len(r.Transactions) != 2 {
			return fmt.Errorf("the record of %s reads %q", r.ID, r)
		}
		return nil
	})

	event := c.output.Event(t, fill, "OutputFilled")
	c.Execute(t, c.output.Transaction(t, c.owner(), "setAttestation", common.HexToHash(r.OrderID), event[0], event[1], output))
	c.claim(t, r, solver, event)
	c.expectStatus(t, r, orderClaimed)
	if got := anvil.Read[*big.Int](t, c.Node, c.token, "balanceOf", common.HexToAddress(recipient)); got.Cmp(output.Amount) < 0 {
		t.Errorf("the recipient has %s units", got)
	}
	if way := s.way(t, r.ID); way != "created submitted confirmed filled" {
		t.Errorf("went %q", way)
	}
}

// resetsAllowance bridges a token that refuses to change an allowance, where one stands.
func resetsAllowance(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	r := client.create(t, body(from.at(from.account(t)), from.at(from.tether.Address), sent, to.at(common.HexToAddress(recipient)), to.native(), received))
	from.Execute(t, from.tether.Transaction(t, r.Tx.From, "approve", from.input.Address, big.NewInt(1)))
	checked := client.preflight(t, r.ID, "allowance")
	if checked.ok || !strings.Contains(checked.detail, "reset") || checked.simulation != approvedFirst {
		t.Errorf("preflight of a token that refuses: %+v", checked)
	}
	approve, open := r.Tx.Calls.Calls[0], r.Tx.Calls.Calls[1]
	approve.From, open.From = r.Tx.From, r.Tx.From
	if from.Mined(t, from.Send(t, approve)).Status == 1 {
		t.Error("the token changes an allowance that is not zero")
	}
	reset := r.Tx.Allowances[0].Reset
	from.Execute(t, anvil.Transaction{From: r.Tx.From, To: &reset.To, Data: reset.Data})
	from.Execute(t, approve)
	from.opened(t, r, from.Execute(t, open))
	from.Mine(t, 2*depth)
	client.await(t, r.ID, "confirmed, open finalized")
	from.expectStatus(t, r, orderDeposited)
}

// keepsSettlement imports a chain with other contracts while an order is open, which still ends at those that it names.
func keepsSettlement(t *testing.T, s *chainStack, c *evmChain) {
	t.Helper()
	client := s.client(t)
	request := body(c.at(c.account(t)), c.native(), sent, c.at(common.HexToAddress(recipient)), c.at(c.token.Address), received)
	r := client.create(t, request)
	c.opened(t, r, c.sendCalls(t, r))
	c.Mine(t, 2*depth)
	client.await(t, r.ID, "confirmed, open finalized")

	other := c.settlement()
	for _, member := range []string{"inputSettler", "outputSettler", "oracle"} {
		other[member] = c.Deploy(t, c.owner(), anvil.Compiled(t, "OwnedOracle"), c.owner()).Address // anything that has code
	}
	mustCore(t, s.Stack, string(encode(t, map[string]any{"chains": []any{c.definition(other)}})), "chains", "import", "-")
	eventually(t, func() error {
		if again := client.create(t, request); *again.Tx.Calls.Calls[0].To == c.input.Address {
			return fmt.Errorf("new orders are still opened at %s", c.input.Address)
		}
		return nil
	})
	solver := c.account(t)
	c.Execute(t, c.token.Transaction(t, solver, "approve", c.output.Address, r.output(t).Amount))
	c.fill(t, solver, r.OrderID, r.output(t))
	c.Mine(t, 2*depth)
	client.await(t, r.ID, "filled, open finalized, fill finalized")
}
