package evm_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/evm"
)

var (
	hashA    = "0x" + strings.Repeat("aa", 32)
	hashB    = "0x" + strings.Repeat("bb", 32)
	addressA = "0x" + strings.Repeat("11", 20)
	addressB = "0x" + strings.Repeat("22", 20)

	blockText = `{"number":"0x10","hash":"` + hashA + `","parentHash":"` + hashB + `","timestamp":"0x6b35fbe0","transactions":["` + hashB +
		`",{"hash":"` + hashA + `","type":"0x7e"}],"l1BlockNumber":"0x1"}`
	logText = `{"address":"` + addressA + `","topics":["` + hashA + `"],"data":"0x0102","blockNumber":"0x10","blockHash":"` + hashB +
		`","transactionHash":"` + hashA + `","logIndex":"0x3","removed":false,"blockTimestamp":"0x1"}`
	receiptText = `{"transactionHash":"` + hashA + `","blockNumber":"0x10","blockHash":"` + hashB + `","from":"` + addressA + `","to":"` + addressB +
		`","status":"0x1","logs":[` + logText + `],"l1Fee":"0x1"}`
	transactionText = `{"hash":"` + hashA + `","from":"` + addressA + `","to":"` + addressB + `","nonce":"0x7","value":"0xde0b6b3a7640000","input":"0x",` +
		`"blockNumber":"0x10","blockHash":"` + hashB + `","type":"0x7e","mint":"0x0"}`
)

var compareIntegers = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })

func TestBlock_UnmarshalJSON(t *testing.T) {
	t.Parallel()
	want := evm.Block{
		Number: 16, Hash: common.HexToHash(hashA), ParentHash: common.HexToHash(hashB), Time: time.Unix(0x6b35fbe0, 0).UTC(),
		Transactions: []common.Hash{common.HexToHash(hashB), common.HexToHash(hashA)},
	}
	if diff := cmp.Diff(want, decode[evm.Block](t, blockText)); diff != "" {
		t.Error(diff)
	}
}

func TestReceipt_UnmarshalJSON(t *testing.T) {
	t.Parallel()
	to := common.HexToAddress(addressB)
	want := evm.Receipt{
		TxHash: common.HexToHash(hashA), BlockNumber: 16, BlockHash: common.HexToHash(hashB), From: common.HexToAddress(addressA), To: &to,
		Succeeded: true,
		Logs: []evm.Log{{
			Address: common.HexToAddress(addressA), Topics: []common.Hash{common.HexToHash(hashA)}, Data: []byte{1, 2},
			BlockNumber: 16, BlockHash: common.HexToHash(hashB), TxHash: common.HexToHash(hashA), Index: 3,
		}},
	}
	if diff := cmp.Diff(want, decode[evm.Receipt](t, receiptText)); diff != "" {
		t.Error(diff)
	}
	created := decode[evm.Receipt](t, strings.NewReplacer(`"to":"`+addressB+`"`, `"to":null`, `"status":"0x1"`, `"status":"0x0"`).Replace(receiptText))
	if created.To != nil || created.Succeeded {
		t.Errorf("a reverted creation of a contract: To %v, Succeeded %v", created.To, created.Succeeded)
	}
}

func TestTransaction_UnmarshalJSON(t *testing.T) {
	t.Parallel()
	to, number, block := common.HexToAddress(addressB), uint64(16), common.HexToHash(hashB)
	want := evm.Transaction{
		Hash: common.HexToHash(hashA), From: common.HexToAddress(addressA), To: &to, Nonce: 7, Type: 0x7e, Value: big.NewInt(1e18), Input: []byte{},
		BlockNumber: &number, BlockHash: &block,
	}
	if diff := cmp.Diff(want, decode[evm.Transaction](t, transactionText), compareIntegers); diff != "" {
		t.Error(diff)
	}
	pending := strings.NewReplacer(`"blockNumber":"0x10"`, `"blockNumber":null`, `"blockHash":"`+hashB+`"`, `"blockHash":null`).Replace(transactionText)
	want.BlockNumber, want.BlockHash = nil, nil
	if diff := cmp.Diff(want, decode[evm.Transaction](t, pending), compareIntegers); diff != "" {
		t.Error(diff)
	}
}

// Receipts from before EIP-658 have no status, and some chains have transactions without a value or an input.
func TestUnmarshalJSON_MissingMembers(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]string{"absent": `"other":"0x1"`, "null": `"status":null`} {
		old := decode[evm.Receipt](t, strings.Replace(receiptText, `"status":"0x1"`, without, 1))
		if !old.Succeeded || len(old.Logs) != 1 {
			t.Errorf("status %s, with a log: Succeeded %v, %d logs", name, old.Succeeded, len(old.Logs))
		}
		silent := strings.NewReplacer(`"status":"0x1"`, without, logText, "").Replace(receiptText)
		if decode[evm.Receipt](t, silent).Succeeded {
			t.Errorf("status %s, without logs: counts as succeeded", name)
		}
	}
	strange := decode[evm.Transaction](t, strings.NewReplacer(`"value":"0xde0b6b3a7640000",`, "", `"input":"0x",`, "").Replace(transactionText))
	if strange.Value != nil || strange.Input != nil || strange.Nonce != 7 {
		t.Errorf("a transaction without value and input: %+v", strange)
	}
}

// edit replaces a part of a valid object; a fault is what decoding the result must say.
type edit struct{ from, to, fault string }

func TestUnmarshalJSON_Refused(t *testing.T) {
	t.Parallel()
	quantity := func(name, right, fault string) []edit {
		edits := []edit{{`"` + name + `":"` + right + `"`, `"other":1`, name + " is missing"}, {`"` + name + `":"` + right + `"`, `"` + name + `":null`, name + " is missing"}}
		for _, wrong := range []string{`16`, `"16"`, `""`, `"0x"`, `"0x010"`, `"0xg"`, `"-0x1"`, `"0x10000000000000000"`, `true`, `[]`, `{}`} {
			edits = append(edits, edit{`"` + name + `":"` + right + `"`, `"` + name + `":` + wrong, fault})
		}
		return edits
	}
	tables := []struct {
		valid  string
		decode func(string) error
		edits  []edit
	}{
		{blockText, try[evm.Block], append(quantity("number", "0x10", "number"),
			edit{`"number":"0x10"`, `"number":"0x8000000000000000"`, "number is over 63 bits"},
			edit{`"number":"0x10"`, `"number":"0x10","number":"0x11"`, "duplicate"},
			edit{`"number"`, `"Number"`, "number is missing"},
			edit{`"timestamp":"0x6b35fbe0"`, `"timestamp":"0x3afff44180"`, "timestamp is after the year 9999"},
			edit{`"hash":"` + hashA + `","parentHash"`, `"hash":null,"parentHash"`, "hash is missing"},
			edit{`"transactions":[`, `"transactions":[7,`, "transactions"},
			edit{`"transactions":[`, `"transactions":[null,`, "transactions"},
			edit{`"transactions":[`, `"transactions":[{},`, "/transactions/0\": hash is missing"},
			edit{`"transactions":["` + hashB, `"transactions":["0x` + strings.Repeat("b", 63), "transactions"},
			edit{`"transactions"`, `"others"`, "transactions is missing"},
		)},
		{logText, try[evm.Log], append(quantity("logIndex", "0x3", "logIndex"),
			edit{`"removed":false`, `"removed":true`, "removed is true"},
			edit{`"removed":false`, `"removed":"false"`, "removed"},
			edit{`"logIndex":"0x3"`, `"logIndex":"0x80000000"`, "logIndex is over 31 bits"},
			edit{`"topics":[`, `"topics":["` + strings.Repeat(hashB+`","`, 4) + hashB + `",`, "more elements"},
			edit{`"topics":[`, `"topics":[null,`, "topics"},
			edit{`"data":"0x0102"`, `"data":"0x012"`, "data"},
			edit{`"data":"0x0102"`, `"data":"0102"`, "data"},
			edit{`"data":"0x0102"`, `"data":""`, "data"},
			edit{addressA, addressA + "11", "address"},
			edit{`"blockNumber":"0x10"`, `"blockNumber":null`, "blockNumber is missing"},
		)},
		{receiptText, try[evm.Receipt], append(quantity("status", "0x1", "status")[2:], // it may be missing
			edit{`"status":"0x1"`, `"status":"0x2"`, "status is neither 0x0 nor 0x1"},
			edit{`"logs":[`, `"logs":[{},`, "address is missing"},
			edit{`"logs":[`, `"logs":[null,`, "address is missing"},
			edit{`"to":"` + addressB + `"`, `"to":"0x"`, "to"},
			edit{`{"transactionHash":"` + hashA, `{"transactionHash":"` + hashB, "its logs are of another transaction or block"},
			edit{`"blockNumber":"0x10"`, `"blockNumber":"0x11"`, "its logs are of another transaction or block"},
		)},
		{transactionText, try[evm.Transaction], append(quantity("nonce", "0x7", "nonce"),
			edit{`"value":"0xde0b6b3a7640000"`, `"value":"0x1` + strings.Repeat("0", 64) + `"`, "value"},
			edit{`"blockNumber":"0x10"`, `"blockNumber":null`, "only one of blockNumber and blockHash"},
			edit{`"input":"0x"`, `"input":""`, "input"},
		)},
	}
	for i, table := range tables {
		if err := table.decode(table.valid); err != nil {
			t.Fatalf("table %d, the valid object: %v", i, err)
		}
		for _, text := range []string{"", "null", "[]", "7", `"x"`, "{", table.valid + "{}", table.valid[:len(table.valid)-1], "\xff"} {
			if table.decode(text) == nil {
				t.Errorf("table %d took %.40q", i, text)
			}
		}
		for _, edit := range table.edits {
			text := strings.Replace(table.valid, edit.from, edit.to, 1)
			if text == table.valid {
				t.Fatalf("table %d has no %q", i, edit.from)
			}
			if err := table.decode(text); err == nil || !strings.Contains(err.Error(), edit.fault) {
				t.Errorf("table %d, %q instead of %q: got %v, want an error with %q", i, edit.to, edit.from, err, edit.fault)
			}
		}
	}
}

func decode[T any](tb testing.TB, text string) (v T) {
	tb.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatalf("decode %T: %v", v, err)
	}
	return v
}

func try[T any](text string) error {
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

func FuzzUnmarshalJSON(f *testing.F) {
	for _, seed := range []string{blockText, logText, receiptText, transactionText, "null", "{}", "[]", `{"transactions":[null]}`, `{"logs":[null]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var block evm.Block
		if json.Unmarshal(text, &block) == nil && block.Time.Year() > 9999 {
			t.Errorf("a time that cannot be written: %v", block.Time)
		}
		var log evm.Log
		if json.Unmarshal(text, &log) == nil && len(log.Topics) > 4 {
			t.Errorf("%d topics", len(log.Topics))
		}
		var receipt evm.Receipt
		if json.Unmarshal(text, &receipt) == nil {
			for _, log := range receipt.Logs {
				if log.BlockHash != receipt.BlockHash || log.TxHash != receipt.TxHash {
					t.Error("a log of another transaction")
				}
			}
		}
		var transaction evm.Transaction
		if json.Unmarshal(text, &transaction) == nil && transaction.Value != nil && (transaction.Value.BitLen() > 256 || transaction.Value.Sign() < 0) {
			t.Errorf("value %v", transaction.Value)
		}
	})
}
