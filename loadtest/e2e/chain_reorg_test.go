package e2e_test

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/loadtest/anvil"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

// priced is the first call of a record in a transaction that has the same hash each time it is sent.
func (c *evmChain) priced(t *testing.T, r *intents.Transfer) anvil.Transaction {
	t.Helper()
	tx := calls(t, r.Tx)[0]
	nonce := hexutil.Uint64(c.Nonce(t, tx.From))
	tx.Nonce, tx.Gas = &nonce, 1_000_000
	tx.GasPrice = (*hexutil.Big)(big.NewInt(50e9))
	return tx
}

// An effect that a reorganization takes away is taken back, and confirmed again when it comes back.
func reorganizes(t *testing.T, s *chainStack, c, to *evmChain) {
	t.Helper()
	client := s.client(t)
	payment := client.create(t, c.payment(c.account(t), c.native()))
	bridge := client.create(t, c.order(c.account(t), c.native(), to, to.native()))
	c.Mine(t, 3*depth) // what is final must not change
	pay, open := c.priced(t, payment), c.priced(t, bridge)
	sendBoth := func() {
		t.Helper()
		hash := c.Execute(t, pay).Hash
		c.opened(t, bridge, c.Execute(t, open))
		if len(payment.Transactions) == 0 {
			client.report(t, payment.ID, hash)
		}
	}
	confirmed := func() {
		t.Helper()
		c.Mine(t, depth-1)
		payment = client.await(t, payment.ID, "confirmed, send mined")
		bridge = client.await(t, bridge.ID, "confirmed, open mined")
	}
	sendBoth()
	confirmed()

	c.Reorganize(t, depth+1)
	client.await(t, payment.ID, "submitted, send pending")
	client.await(t, bridge.ID, "created")
	sendBoth()
	confirmed()

	c.Mine(t, depth)
	client.await(t, payment.ID, "confirmed, send finalized")
	client.await(t, bridge.ID, "confirmed, open finalized")
	client.awaitHistory(t, payment.ID, "created submitted confirmed submitted confirmed")
}

// Where a final block changes, nothing is concluded any more until the operator resumes the chain; then it counts as it is.
func stopsAndResumes(t *testing.T, s *chainStack, c *evmChain) {
	t.Helper()
	client := s.client(t)
	account := c.account(t)
	r := client.create(t, c.payment(account, c.native()))
	c.Mine(t, 2*depth)
	pay := c.priced(t, r)
	receipt := c.Execute(t, pay)
	client.report(t, r.ID, receipt.Hash)
	c.Mine(t, 2*depth)
	client.await(t, r.ID, "confirmed, send finalized")
	unfinished := client.create(t, c.payment(account, c.native()))

	c.Reorganize(t, 2*depth+2)
	asynctest.Succeeds(t, func() error {
		out, err := s.core(t, "chains", "check")
		if err == nil || !strings.Contains(out, "the chain is stopped, as block ") {
			return fmt.Errorf("core chains check: %w\n%s", err, out)
		}
		return nil
	})
	client.await(t, r.ID, "confirmed, send finalized")
	client.await(t, unfinished.ID, "created")

	from := strconv.FormatUint(uint64(receipt.BlockNumber)-1, 10)
	if out, err := s.core(t, "chains", "resume", c.name(), "--from", from); err != nil || !strings.Contains(out, "it was stopped because block ") {
		t.Fatalf("core chains resume: %v\n%s", err, out)
	}
	client.await(t, r.ID, "submitted, send pending")
	c.Execute(t, pay)
	c.Mine(t, 2*depth)
	client.await(t, r.ID, "confirmed, send finalized")
}
