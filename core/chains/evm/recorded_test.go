package evm_test

import (
	_ "embed"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/chains/evm"
)

// recordedChain holds answers of anvil with the reference settler on two chains; its note tells the versions.
//
//go:embed testdata/recorded_chain.json
var recordedChain []byte

type recording struct {
	Cases []struct {
		Name  string `json:"name"`
		Steps []struct {
			Step        string         `json:"step"`
			Transaction jsontext.Value `json:"transaction"`
			Receipt     jsontext.Value `json:"receipt"`
		} `json:"steps"`
	} `json:"cases"`
	Logs map[string]struct {
		Result []jsontext.Value `json:"result"`
	} `json:"logs"`
}

func TestRecordedChain(t *testing.T) {
	t.Parallel()
	recorded := decode[recording](t, string(recordedChain))
	var reverted, fromReceipts, fromLogs int
	steps := map[string]int{}
	for _, c := range recorded.Cases {
		for _, s := range c.Steps {
			steps[s.Step]++
			transaction, receipt := decode[evm.Transaction](t, string(s.Transaction)), decode[evm.Receipt](t, string(s.Receipt))
			got := evm.Receipt{TxHash: transaction.Hash, BlockNumber: *transaction.BlockNumber, BlockHash: *transaction.BlockHash, From: transaction.From, To: transaction.To}
			want := receipt
			want.Logs, want.Succeeded = nil, false
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: the receipt and the transaction differ: %s", c.Name, s.Step, diff)
			}
			if !receipt.Succeeded {
				reverted++
			}
			fromReceipts += len(receipt.Logs)
		}
	}
	for chain, answer := range recorded.Logs {
		for _, text := range answer.Result {
			log := decode[evm.Log](t, string(text))
			if len(log.Topics) == 0 {
				t.Errorf("%s: a log of the settler without topics", chain)
			}
			fromLogs++
		}
	}
	want := map[string]int{
		"open": 7, "fill": 5, "settle": 5, "settled": 5, "refund": 1, "refunded": 1,
		"reverted": 1, "logs of receipts": 63, "logs of settlers": 17,
	}
	steps["reverted"], steps["logs of receipts"], steps["logs of settlers"] = reverted, fromReceipts, fromLogs
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
}

func FuzzUnmarshalJSON(f *testing.F) {
	for _, seed := range []string{blockText, logText, receiptText, transactionText, "null", "{}", "[]", `{"transactions":[null]}`, `{"logs":[null]}`} {
		f.Add([]byte(seed))
	}
	var recorded recording
	if err := json.Unmarshal(recordedChain, &recorded); err != nil {
		f.Fatal(err)
	}
	for _, s := range recorded.Cases[0].Steps {
		f.Add([]byte(s.Transaction))
		f.Add([]byte(s.Receipt))
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
