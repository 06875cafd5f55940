package e2e_test

import (
	"fmt"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/loadtest/anvil"
)

const (
	sent, received = "1000", "990"
	recipient      = "0x000000000000000000000000000000000000dEaD"
)

// Intents on real chains: clients send the transactions that the API gives them, and the records follow what becomes of them.
func TestChains(t *testing.T) {
	t.Parallel()
	a, b := newChain(t, 31337, "depth"), newChain(t, 31338, "depth")
	moody, slow := newChain(t, 31340, "depth"), newChain(t, 31341, "depth")
	safe, finalized := newChain(t, 31342, "safe"), newChain(t, 31343, "finalized")
	broken := newChain(t, 31344, "depth")
	timed, second := newChain(t, 31345, "depth"), newChain(t, 31346, "depth")
	s := newChainStack(t, a, b, moody, slow, safe, finalized, broken, timed, second)
	if out, err := s.core(t, "chains", "check"); err != nil {
		t.Errorf("core chains check: %v\n%s", err, out)
	}
	viem := startLifecyclesOnAnvil(t, s, timed, second)
	t.Run("transfer of a token", func(t *testing.T) { t.Parallel(); transferConfirms(t, s, a, a.at(a.token.Address)) })
	t.Run("transfer of the native asset", func(t *testing.T) { t.Parallel(); transferConfirms(t, s, a, a.native()) })
	t.Run("transfer of a token with a fee", func(t *testing.T) {
		t.Parallel()
		transferFails(t, s, a, a.at(a.feeToken.Address), 0, "TX_MISMATCH", "mismatch")
	})
	t.Run("transfer that reverts", func(t *testing.T) {
		t.Parallel()
		transferFails(t, s, a, a.at(a.token.Address), tokens, "TX_REVERTED", "reverted")
	})
	t.Run("bridge of a token", func(t *testing.T) {
		t.Parallel()
		bridgeFills(t, s, a, b, a.at(a.token.Address), b.at(b.token.Address), false)
	})
	t.Run("bridge of the native asset back", func(t *testing.T) { t.Parallel(); bridgeFills(t, s, b, a, b.native(), a.native(), true) })
	t.Run("bridge of a token to native", func(t *testing.T) { t.Parallel(); bridgeFills(t, s, b, a, b.at(b.token.Address), a.native(), true) })
	t.Run("bridge that is refunded", func(t *testing.T) { t.Parallel(); bridgeIsRefunded(t, s, a, b) })
	t.Run("transactions that are simulated first", func(t *testing.T) { t.Parallel(); simulates(t, s, a, b) })
	t.Run("bridge from a smart account", func(t *testing.T) { t.Parallel(); smartAccountOpens(t, s, a, b) })
	t.Run("native from a smart account", func(t *testing.T) { t.Parallel(); smartAccountPays(t, s, a) })
	t.Run("reorganizations", func(t *testing.T) { t.Parallel(); reorganizes(t, s, moody, b) })
	t.Run("final block that changes", func(t *testing.T) { t.Parallel(); stopsAndResumes(t, s, broken) })
	t.Run("replaced transactions", func(t *testing.T) { t.Parallel(); replaces(t, s, slow) })
	t.Run("tag safe", func(t *testing.T) { t.Parallel(); followsTag(t, s, safe, 2) })
	t.Run("tag finalized", func(t *testing.T) { t.Parallel(); followsTag(t, s, finalized, 4) })
	t.Run("every kind with viem", func(t *testing.T) { t.Parallel(); viem(t) })
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

func transferConfirms(t *testing.T, s *chainStack, c *evmChain, token string) {
	t.Helper()
	client := s.client(t)
	r := client.create(t, body(c.at(c.account(t)), token, sent, c.at(common.HexToAddress(recipient)), "", ""))
	receipt := c.sendCalls(t, r)
	client.report(t, r.ID, receipt.Hash)
	c.Mine(t, 2*depth)
	r = client.await(t, r.ID, "confirmed, send finalized")
	if !r.Final || r.Metadata.Hash != receipt.Hash.Hex() || r.Confirmations == nil || r.Confirmations.Have < 2*depth ||
		r.Confirmations.Need != depth || !r.Confirmations.Finalized || *r.Transactions[0].BlockNumber != uint64(receipt.BlockNumber) {
		t.Errorf("record %+v, confirmations %+v of %s", r, r.Confirmations, receipt.Hash)
	}
}

// transferFails sends so much more than the sender has.
func transferFails(t *testing.T, s *chainStack, c *evmChain, token string, more int64, failure, state string) {
	t.Helper()
	client := s.client(t)
	amount := big.NewInt(tokens/2 + more)
	r := client.create(t, body(c.at(c.account(t)), token, amount.String(), c.at(common.HexToAddress(recipient)), "", ""))
	call := r.Tx.Calls.Calls[0]
	call.From, call.Gas = r.Tx.From, 200_000 // the node estimates no gas for what reverts
	client.report(t, r.ID, c.Mined(t, c.Send(t, call)).Hash)
	c.Mine(t, 2*depth)
	client.await(t, r.ID, "failed "+failure+", send "+state)
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

// fill pays the recipient of an order from an account of its own, which gets the input.
func (c *evmChain) fill(t *testing.T, r chainRecord, token string) {
	t.Helper()
	filler := c.account(t)
	receiver := common.BytesToHash(filler[:]).Bytes()
	fill := c.settler.Transaction(t, filler, "fill", [32]byte(common.HexToHash(r.OrderID)), []byte(r.Order.OrderData), receiver)
	if token == c.native() {
		fill.Value = (*hexutil.Big)(big.NewInt(990))
	} else {
		c.Execute(t, c.token.Transaction(t, filler, "approve", c.settler.Address, big.NewInt(990)))
	}
	c.Execute(t, fill)
}

func bridgeFills(t *testing.T, s *chainStack, from, to *evmChain, in, out string, reported bool) {
	t.Helper()
	client := s.client(t)
	r := client.create(t, body(from.at(from.account(t)), in, sent, to.at(common.HexToAddress(recipient)), out, received))
	receipt := from.sendCalls(t, r)
	from.opened(t, r, receipt)
	if reported {
		client.report(t, r.ID, receipt.Hash)
	}
	from.Mine(t, depth)
	client.awaitConfirmed(t, r.ID)
	fillAndSettle(t, client, from, to, r, out)
}

// fillAndSettle takes an open order to its end.
func fillAndSettle(t *testing.T, client *chainClient, from, to *evmChain, r chainRecord, out string) {
	t.Helper()
	to.fill(t, r, out)
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
	if way := client.way(t, r.ID); way != "created submitted confirmed filled" {
		t.Errorf("went %q", way)
	}
	if !filled.Final || filled.Transactions[0].ChainID != from.name() || filled.Transactions[1].ChainID != to.name() {
		t.Errorf("record %+v", filled)
	}
}

// An order that nobody fills before its deadline, which is a minute ahead at the least, is refunded by the transaction that the API gives
// for it then.
func bridgeIsRefunded(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	request := body(from.at(from.account(t)), from.at(from.token.Address), sent, to.at(common.HexToAddress(recipient)), to.at(to.token.Address), received)
	deadline := time.Now().Add(62 * time.Second).Truncate(time.Second)
	request["deadline"] = deadline.UTC().Format(time.RFC3339)
	r := client.create(t, request)
	from.opened(t, r, from.sendCalls(t, r))
	from.Mine(t, depth)
	client.awaitConfirmed(t, r.ID)
	early := expect[failure](t, client.do(http.MethodGet, "/v2/transfers/"+r.ID+"/refund", nil), http.StatusConflict)
	if early.Code != "NOT_REFUNDABLE" {
		t.Errorf("before the deadline: %+v", early)
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	<-timer.C
	to.PassTime(t, deadline.Add(time.Second)) // the chain's clock decides too
	var refund struct{ Tx walletTx }
	eventually(t, func() error {
		a := client.do(http.MethodGet, "/v2/transfers/"+r.ID+"/refund", nil)
		if a.Status == http.StatusConflict {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		refund = expect[struct{ Tx walletTx }](t, a, http.StatusOK)
		return nil
	})
	if r = client.read(t, r.ID); !r.Refundable || refund.Tx.ChainID != to.ChainID {
		t.Errorf("refundable %v, refund on chain %d", r.Refundable, refund.Tx.ChainID)
	}
	call := refund.Tx.Calls.Calls[0]
	call.From = to.owner() // anybody may
	from.Execute(t, from.settler.Delivery(t, from.owner(), to.settler, uint32(to.ChainID), to.Execute(t, call)))
	from.Mine(t, 2*depth)
	r = client.await(t, r.ID, "refunded, open finalized, refund finalized")
	if got := from.status(t, r.OrderID); !r.Final || r.Refundable || got != "REFUNDED" {
		t.Errorf("record %+v, the settler says %q", r, got)
	}
}

// batch is a smart account's execution of the calls of a record.
func batch(t *testing.T, account anvil.Deployed, owner common.Address, r chainRecord) anvil.Transaction {
	t.Helper()
	type call struct {
		To    common.Address
		Value *big.Int
		Data  []byte
	}
	var calls []call
	for _, c := range r.Tx.Calls.Calls {
		calls = append(calls, call{*c.To, c.Value.ToInt(), c.Data})
	}
	return account.Transaction(t, owner, "execute", calls)
}

func smartAccountOpens(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client, owner := s.client(t), from.account(t)
	account := from.Deploy(t, owner, anvil.Compiled(t, "SmartAccount"), owner)
	from.mint(t, account.Address)
	r := client.create(t, body(from.at(account.Address), from.at(from.token.Address), sent, to.at(common.HexToAddress(recipient)), to.at(to.token.Address), received))
	receipt := from.Execute(t, batch(t, account, owner, r))
	from.opened(t, r, receipt)
	client.report(t, r.ID, receipt.Hash)
	from.Mine(t, depth)
	client.awaitConfirmed(t, r.ID)
	fillAndSettle(t, client, from, to, r, to.at(to.token.Address))
}

// A native transfer of a contract leaves no log: the record says that it cannot be followed.
func smartAccountPays(t *testing.T, s *chainStack, c *evmChain) {
	t.Helper()
	client, owner := s.client(t), c.account(t)
	account := c.Deploy(t, owner, anvil.Compiled(t, "SmartAccount"), owner)
	c.Execute(t, anvil.Transaction{From: owner, To: &account.Address, Value: (*hexutil.Big)(big.NewInt(1000))})
	r := client.create(t, body(c.at(account.Address), c.native(), sent, c.at(common.HexToAddress(recipient)), "", ""))
	client.report(t, r.ID, c.Execute(t, batch(t, account, owner, r)).Hash)
	c.Mine(t, 2*depth)
	r = client.await(t, r.ID, "submitted, send finalized")
	if r.Verification == nil || *r.Verification != "unsupported" {
		t.Errorf("verification %v", r.Verification)
	}
}
