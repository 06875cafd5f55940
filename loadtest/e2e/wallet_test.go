package e2e_test

import (
	"math/big"
	"slices"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/anvil"
	intents "intents.internal/pkg/client"
)

const (
	sent, received = "1000", "990"
)

var recipient = common.HexToAddress("0x000000000000000000000000000000000000dEaD")

// Intents on real chains: clients send the transactions that the API gives them, and the records follow what becomes of them. What is shown
// needs a node that reorganizes its chain, names safe and final blocks, sets its clock, or mines on demand; everything else is followed on the local chains.
// It takes longer than any but the walk, and starts as early (see there).
func TestChains(t *testing.T) {
	journey(t)
	t.Parallel()
	a, b, moody := newChain(t, 31337, "depth"), newChain(t, 31338, "finalized"), newChain(t, 31340, "depth")
	s := newChainStack(t, a, b, moody)
	if out, err := s.core(t, "chains", "check"); err != nil {
		t.Errorf("core chains check: %v\n%s", err, out)
	}
	t.Run("console sends with a wallet", func(t *testing.T) { walkSend(t, s, a, b) })
	t.Run("bridge", func(t *testing.T) { bridge(t, s, a, b) })
	t.Run("batch", func(t *testing.T) { paysBatch(t, s, moody, b) })
	t.Run("sign-in of a smart account", func(t *testing.T) { smartAccountSignsIn(t, s, a) })
	t.Run("reorganizations", func(t *testing.T) {
		reorganizes(t, s, moody, b)
		stopsAndResumes(t, s, moody)
	})
}

// calls are the transactions of a wallet that cannot batch.
func calls(t *testing.T, tx *intents.Transaction) (all []anvil.Transaction) {
	t.Helper()
	for _, each := range tx.Calls.Calls {
		call := decoded[anvil.Transaction](t, string(encode(t, each)))
		call.From = common.HexToAddress(tx.From)
		all = append(all, call)
	}
	return all
}

// sendCalls sends the transactions of an intent and returns the last.
func (c *evmChain) sendCalls(t *testing.T, r *intents.Transfer) (receipt anvil.Receipt) {
	t.Helper()
	for _, call := range calls(t, r.Tx) {
		receipt = c.Execute(t, call)
	}
	return receipt
}

// opened wants that the order that a transaction opened has the intent's order id.
func (c *evmChain) opened(t *testing.T, r *intents.Transfer, receipt anvil.Receipt) {
	t.Helper()
	event := c.input.ABI.Events["Open"].ID
	for _, l := range receipt.Logs {
		if l.Address == c.input.Address && l.Topics[0] == event && l.Topics[1].Hex() == r.OrderID {
			return
		}
	}
	t.Fatalf("the input settler has not opened %s: %+v", r.OrderID, receipt)
}

// A bridge, from its birth to its end. The simulation of its transaction by a node agrees with what becomes of it.
func bridge(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	r := client.create(t, from.order(from.account(t), from.at(from.token.Address), to, to.native()))
	checked := must(client.Transfers.Preflight(t.Context(), r.ID))(t)
	simulated := checked.Checks[len(checked.Checks)-1] // by the node's eth_simulateV1
	if !checked.OK || checked.Gas == nil || !checked.Checks[1].Needed || simulated.Detail != "The approval and then the transaction succeed at the newest block." {
		t.Fatalf("without the allowance: %+v", checked)
	}
	sends := calls(t, r.Tx)
	approval := from.Execute(t, sends[0])
	if granted := must(client.Transfers.Preflight(t.Context(), r.ID))(t); !granted.OK || granted.Checks[1].Needed {
		t.Errorf("with the allowance: %+v", granted)
	}
	receipt := from.Execute(t, sends[1])
	// The other orders that come and go at the settler change what a transaction costs, so wallets add a margin.
	limit := must(strconv.ParseUint(*checked.Gas, 10, 64))(t)
	if used := uint64(approval.GasUsed + receipt.GasUsed); used > limit+limit/4 || used < limit/2 {
		t.Errorf("the calls took %d gas, and the preflight told %d", used, limit)
	}
	from.opened(t, r, receipt)
	client.report(t, r.ID, receipt.Hash)
	from.Mine(t, 2*depth)
	client.await(t, r.ID, "confirmed, open finalized")

	fill := to.fill(t, r)
	to.Mine(t, 2*depth)
	filled := client.await(t, r.ID, "filled, open finalized, fill finalized")
	if !filled.Final || filled.Transactions[0].ChainID != from.name() || filled.Transactions[1].ChainID != to.name() || filled.Transactions[1].Hash != fill.Hash.Hex() {
		t.Errorf("filled by %s: %+v", fill.Hash, filled)
	}
	client.awaitHistory(t, r.ID, "created submitted confirmed filled")
}

// fill has the chain's output settler pay the native output of an intent's order, which is read from the transaction that opens it.
func (c *evmChain) fill(t *testing.T, r *intents.Transfer) anvil.Receipt {
	t.Helper()
	values, err := anvil.Compiled(t, "InputSettlerEscrow").ABI.Methods["open"].Inputs.Unpack(common.FromHex(r.Tx.Data)[4:])
	if err != nil {
		t.Fatalf("%v: %+v", err, r.Tx)
	}
	order := *abi.ConvertType(values[0], new(anvil.StandardOrder)).(*anvil.StandardOrder) //nolint:forcetypeassert // that is what it returns
	solver := c.account(t)
	tx := c.output.Transaction(t, solver, "fill", common.HexToHash(r.OrderID), order.Outputs[0], big.NewInt(1<<40), common.BytesToHash(solver[:]).Bytes())
	tx.Value = (*hexutil.Big)(order.Outputs[0].Amount)
	return c.Execute(t, tx)
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
