package e2e_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/loadtest/anvil"
	intents "intents.internal/pkg/client"
)

// swap fills a swap of native tokens before it is opened, and its solver claims it on its own chain.
func swap(t *testing.T, s *chainStack, c *evmChain) {
	t.Helper()
	client := s.client(t)
	r := client.create(t, c.order(c.account(t), c.native(), c, c.at(c.token.Address)))
	if r.Type != "swap" || len(r.Tx.Allowances) > 0 {
		t.Errorf("%s with the allowances %+v", r.Type, r.Tx.Allowances)
	}
	solver := c.account(t)
	output := outputOf(t, r)
	c.Execute(t, c.token.Transaction(t, solver, "approve", c.output.Address, output.Amount))
	fill := c.fill(t, solver, r.OrderID, output)
	c.Mine(t, 2*depth)
	c.opened(t, r, c.sendCalls(t, r))
	c.Mine(t, 2*depth)
	if filled := client.wait(t, r.ID, ""); filled.Status != intents.StatusFilled || len(filled.Transactions) != 2 {
		t.Errorf("filled: %+v", filled)
	}

	event := c.output.Event(t, fill, "OutputFilled")
	c.Execute(t, c.output.Transaction(t, c.owner(), "setAttestation", common.HexToHash(r.OrderID), event[0], event[1], output))
	c.claim(t, r, solver, event)
	c.expectStatus(t, r, orderClaimed)
	if got := anvil.Read[*big.Int](t, c.Node, c.token, "balanceOf", recipient); got.Cmp(output.Amount) < 0 {
		t.Errorf("the recipient has %s units", got)
	}
	client.awaitHistory(t, r.ID, "created submitted confirmed filled")
}

// resetsAllowance bridges a token that refuses to change an allowance, where one stands.
func resetsAllowance(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	account := from.account(t)
	r := client.create(t, from.order(account, from.at(from.tether.Address), to, to.native()))
	from.Execute(t, from.tether.Transaction(t, account, "approve", from.input.Address, big.NewInt(1)))
	checked := client.preflight(t, r.ID, intents.CheckAllowance)
	if checked.OK || !strings.Contains(checked.Checks[1].Detail, "reset") {
		t.Errorf("preflight of a token that refuses: %+v", checked)
	}
	approve := calls(t, r.Tx)[0]
	if from.Mined(t, from.Send(t, approve)).Status == 1 {
		t.Error("the token changes an allowance that is not zero")
	}
	reset := r.Tx.Allowances[0].Reset
	token := common.HexToAddress(reset.To)
	from.Execute(t, anvil.Transaction{From: account, To: &token, Data: common.FromHex(reset.Data)})
	from.opened(t, r, from.sendCalls(t, r))
	from.Mine(t, 2*depth)
	client.await(t, r.ID, "confirmed, open finalized")
	from.expectStatus(t, r, orderDeposited)
}

// keepsSettlement imports a chain with other contracts while an order is open, which still ends at those that it names.
func keepsSettlement(t *testing.T, s *chainStack, c *evmChain) {
	t.Helper()
	client := s.client(t)
	request := c.order(c.account(t), c.native(), c, c.at(c.token.Address))
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
		if again := client.create(t, request); again.Tx.To == c.input.Address.Hex() {
			return fmt.Errorf("new orders are still opened at %s", c.input.Address)
		}
		return nil
	})
	solver := c.account(t)
	c.Execute(t, c.token.Transaction(t, solver, "approve", c.output.Address, outputOf(t, r).Amount))
	c.fill(t, solver, r.OrderID, outputOf(t, r))
	c.Mine(t, 2*depth)
	client.await(t, r.ID, "filled, open finalized, fill finalized")
}
