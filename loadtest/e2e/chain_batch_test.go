package e2e_test

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/loadtest/anvil"
	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

// A payroll of twenty payments, two of them equal, and two orders is one batch. A wallet whose account has code (EIP-7702) sends all payments as one
// transaction: each is confirmed by its own log. A reorganization takes all of them back.
func paysBatch(t *testing.T, s *chainStack, c, to *evmChain) {
	t.Helper()
	client, account := s.client(t), c.account(t)
	c.delegate(t, account)
	const payments = 20
	create := intents.CreateBatch{IdempotencyKey: "payroll"}
	item := func(request intents.CreateTransfer, amount int) {
		request.Source.Amount = intents.Amount(strconv.Itoa(amount))
		create.Transfers = append(create.Transfers, intents.BatchItem{Source: *request.Source, Destination: *request.Destination})
	}
	for n := range payments {
		item(c.payment(account, c.at(c.token.Address)), 1000+max(n, 1)) // the first two are equal
	}
	for n := range 2 {
		item(c.order(account, c.at(c.token.Address), to, to.native()), 2000+n)
	}
	made := must(client.Batches.Create(t.Context(), create))(t)
	again := must(client.Batches.Create(t.Context(), create))(t)
	if len(made) != 1 || len(again) != 1 || again[0].ID != made[0].ID || made[0].Count != payments+2 {
		t.Fatalf("made %+v, again %+v", made, again)
	}
	batch := made[0].ID

	planned := must(client.Batches.Calls(t.Context(), batch, intents.CallsQuery{MaxCalls: 200}))(t)
	if len(planned.Requests) != 1 || len(planned.Excluded) != 0 || len(planned.Requests[0].Calls.Calls) != payments+3 {
		t.Fatalf("20 payments, two openings and one approval: %+v", planned)
	}
	c.Mine(t, 3*depth) // what is final must not change
	pay := c.batched(t, account, planned.Requests[0].Calls)
	receipt := c.Execute(t, pay)
	must(client.Batches.Report(t.Context(), batch, receipt.Hash.Hex()))(t)
	c.Mine(t, depth-1)
	client.awaitBatch(t, batch, map[intents.TransferStatus]int{intents.StatusConfirmed: payments + 2})
	wantLogsInOrder(t, s, batch, payments)

	c.Reorganize(t, depth+1)
	client.awaitBatch(t, batch, map[intents.TransferStatus]int{intents.StatusSubmitted: payments + 2})
	c.Execute(t, pay)
	c.Mine(t, 2*depth)
	client.awaitBatch(t, batch, map[intents.TransferStatus]int{intents.StatusConfirmed: payments + 2})
	if rest := must(client.Batches.Calls(t.Context(), batch, intents.CallsQuery{}))(t); len(rest.Requests) != 0 || len(rest.Excluded) != payments+2 {
		t.Errorf("what is paid for is handed out again: %+v", rest)
	}
}

// awaitBatch waits until so many intents of a batch are in each status.
func (c *chainClient) awaitBatch(t *testing.T, id string, want map[intents.TransferStatus]int) {
	t.Helper()
	asynctest.Succeeds(t, func() error {
		got := must(c.Batches.Get(t.Context(), id))(t)
		for status, count := range want {
			if got.Statuses[status] != count || len(got.Statuses) != len(want) {
				return fmt.Errorf("batch %s is %v, want %v", id, got.Statuses, want)
			}
		}
		return nil
	})
}

// wantLogsInOrder wants that each payment of a batch was confirmed by a log of its own, in the order of the batch.
func wantLogsInOrder(t *testing.T, s *chainStack, batch string, payments int) {
	t.Helper()
	logs := system.QueryRow[[]int64](t, s.Env().DatabaseURL, `SELECT array_agg(log_index ORDER BY transfers.id)
		FROM transfers JOIN transactions ON transactions.account_id = transfers.account_id AND transactions.transfer_id = transfers.id
		WHERE batch_id = $1 AND transfers.type = 'transfer' AND transactions.state = 'mined'`, batch)
	if len(logs) != payments || !slices.IsSorted(logs) || len(slices.Compact(slices.Clone(logs))) != payments {
		t.Errorf("the payments were confirmed by the logs %v", logs)
	}
}

// delegate gives an account code that executes batches for its own key (EIP-7702).
func (c *evmChain) delegate(t *testing.T, account common.Address) {
	t.Helper()
	code := c.Deploy(t, c.owner(), anvil.Compiled(t, "SmartAccount"), account).Address
	c.Call(t, nil, "anvil_setCode", account, "0xef0100"+code.Hex()[2:])
}

// batched is the transaction in which a wallet executes calls at once. It has the same hash each time it is sent.
func (c *evmChain) batched(t *testing.T, account common.Address, calls intents.SendCalls) anvil.Transaction {
	t.Helper()
	type call struct {
		To    common.Address
		Value *big.Int
		Data  []byte
	}
	all := make([]call, len(calls.Calls))
	for n, each := range calls.Calls {
		all[n] = call{common.HexToAddress(each.To), must(hexutil.DecodeBig(each.Value))(t), must(hexutil.Decode(each.Data))(t)}
	}
	wallet := anvil.Deployed{Contract: anvil.Compiled(t, "SmartAccount"), Address: account}
	tx := wallet.Transaction(t, account, "execute", all)
	nonce := hexutil.Uint64(c.Nonce(t, account))
	tx.Nonce, tx.Gas, tx.GasPrice = &nonce, 5_000_000, (*hexutil.Big)(big.NewInt(50e9))
	return tx
}
