package rpctest_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/chains/rpc"
	"intents.internal/core/chains/rpc/rpctest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

var (
	alice   = common.HexToAddress("0xa11ce")
	bob     = common.HexToAddress("0xb0b")
	settler = common.HexToAddress("0x5e771e4")
	topic   = common.HexToHash("0x70")
)

func connect(t *testing.T, node *rpctest.Node) *rpc.Provider {
	t.Helper()
	id := caip.EIP155Chain(1)
	client, err := rpc.NewClient(rpc.Providers{id: {{URL: telemetry.Secret(node.URL()), RequestsPerSecond: 10000}}}, rpc.Options{Transport: rpctest.Transport(node)})
	if err != nil {
		t.Fatal(err)
	}
	chain, _ := client.Chain(id)
	return chain.All()[0]
}

func ask[T any](t *testing.T, p *rpc.Provider, call *rpc.Call[T]) T {
	t.Helper()
	if err := p.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	v, err := call.Result()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func payment(nonce uint64) rpctest.Tx {
	return rpctest.Tx{From: alice, Nonce: nonce, To: &bob, Value: big.NewInt(7), Logs: []rpctest.Log{{Address: settler, Topics: []common.Hash{topic}, Data: []byte{1}}}}
}

func TestChain_Mine(t *testing.T) {
	t.Parallel()
	chain := rpctest.NewChain(1)
	p := connect(t, rpctest.NewNode(chain))
	reverted := payment(1)
	reverted.Reverted = true
	mined := chain.Mine(payment(0), reverted, payment(2))
	chain.MineEmpty(2)
	if block := ask(t, p, rpc.BlockByNumber(rpc.Number(1))); !cmp.Equal(*block, mined) || !block.Time.Equal(rpctest.Start.Add(12*time.Second)) {
		t.Errorf("block 1: %s", cmp.Diff(mined, *block))
	}
	logs := ask(t, p, rpc.Logs(rpc.LogFilter{From: 0, To: 3, Addresses: []common.Address{settler}, Topics: [][]common.Hash{{topic}}}))
	if len(logs) != 2 || logs[1].Index != 1 || logs[1].TxHash != mined.Transactions[2] || logs[1].BlockHash != mined.Hash {
		t.Errorf("logs: %+v", logs)
	}
	for i, hash := range mined.Transactions {
		receipt := ask(t, p, rpc.Receipt(hash))
		if receipt.Succeeded != (i != 1) || len(receipt.Logs) != map[bool]int{true: 1}[receipt.Succeeded] {
			t.Errorf("receipt %d: %+v", i, receipt)
		}
	}
	for number, want := range []uint64{0, 3, 3, 3} {
		if got := ask(t, p, rpc.TransactionCount(alice, rpc.Number(uint64(number)))); got != want {
			t.Errorf("the count at block %d is %d, want %d", number, got, want)
		}
	}
	if txs := ask(t, p, rpc.BlockTransactions(1)); len(txs) != 3 || txs[2].Nonce != 2 || *txs[0].BlockHash != mined.Hash {
		t.Errorf("transactions: %+v", txs)
	}
}

func TestChain_Reorg(t *testing.T) {
	t.Parallel()
	chain := rpctest.NewChain(1)
	p := connect(t, rpctest.NewNode(chain))
	chain.MineEmpty(1)
	kept := chain.Head()
	before := chain.Mine(payment(0), payment(1))
	other := payment(1)
	other.Input = []byte{1}
	fork := chain.Fork(1)
	chain.Reorg(1, []rpctest.Tx{other}, nil)
	after := chain.Block(2)
	if chain.Head().Number != 3 || after.Hash == before.Hash || after.ParentHash != kept.Hash || !after.Time.Equal(before.Time) {
		t.Errorf("after the reorganization: %+v, before: %+v", after, before)
	}
	if forked := fork.Mine(other); forked.Hash == after.Hash || forked.ParentHash != kept.Hash {
		t.Errorf("the fork has the chain's block: %+v", forked)
	}
	if first := ask(t, p, rpc.TransactionByHash(before.Transactions[0])); first == nil || first.BlockNumber != nil {
		t.Errorf("the transaction that lost its block is not pending: %+v", first)
	}
	if second := ask(t, p, rpc.TransactionByHash(before.Transactions[1])); second != nil {
		t.Errorf("the replaced transaction is known: %+v", second)
	}
	chain.Drop(before.Transactions[0])
	if first := ask(t, p, rpc.TransactionByHash(before.Transactions[0])); first != nil {
		t.Errorf("the dropped transaction is known: %+v", first)
	}
	again := rpctest.NewChain(1)
	again.MineEmpty(1)
	if again.Mine(payment(0), payment(1)).Hash != before.Hash {
		t.Error("hashes are not deterministic")
	}
}

func TestChain_Pool(t *testing.T) {
	t.Parallel()
	chain := rpctest.NewChain(1)
	p := connect(t, rpctest.NewNode(chain))
	first := chain.Submit(payment(0))
	replacement := payment(0)
	replacement.Value = big.NewInt(8)
	second := chain.Submit(replacement)
	if ask(t, p, rpc.TransactionByHash(first)) != nil || ask(t, p, rpc.TransactionByHash(second)) == nil {
		t.Error("the second transaction does not replace the first")
	}
	if mined := chain.MinePool(); !cmp.Equal(mined.Transactions, []common.Hash{second}) {
		t.Errorf("mined %v, want %v", mined.Transactions, second)
	}
	if chain.Submit(replacement); len(chain.MinePool().Transactions) != 0 {
		t.Error("a mined transaction is pending again")
	}
}

func TestChain_Contracts(t *testing.T) {
	t.Parallel()
	chain := rpctest.NewChain(1)
	p := connect(t, rpctest.NewNode(chain))
	chain.SetCode(settler, []byte{1})
	chain.SetFunction(settler, rpctest.OrderStatus, func(c rpctest.Call) ([]byte, error) {
		if c.Data[35] == 1 {
			return rpctest.Text("OPENED"), nil
		}
		return nil, rpctest.Revert{0x75}
	})
	if code := ask(t, p, rpc.Code(settler, rpc.Latest)); len(code) != 1 {
		t.Errorf("code %x", code)
	}
	message := rpc.Message{From: alice, To: settler, Data: append(rpctest.OrderStatus[:], rpctest.Word(1)...)}
	if got := ask(t, p, rpc.CallContract(message, rpc.Latest)); string(got[:6]) != "OPENED" || len(got) != 32 {
		t.Errorf("got %x", got)
	}
	if gas := ask(t, p, rpc.EstimateGas(message)); gas != 21000 {
		t.Errorf("gas %d", gas)
	}
}

func BenchmarkChain_Mine(b *testing.B) {
	chain := rpctest.NewChain(1)
	for nonce := uint64(0); b.Loop(); nonce += 10 {
		var txs []rpctest.Tx
		for i := range uint64(10) {
			txs = append(txs, payment(nonce+i))
		}
		chain.Mine(txs...)
	}
}
