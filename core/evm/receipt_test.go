package evm_test

import (
	"strings"
	"testing"

	"intents.internal/core/evm"
)

// The logs of a receipt that nobody waits for are not kept, and count for the result of a transaction from before EIP-658 all the same.
func TestDecodeReceipt_Kept(t *testing.T) {
	t.Parallel()
	all, err := evm.DecodeReceipt([]byte(receiptText), func(evm.Log) bool { return true })
	if err != nil || len(all.Logs) == 0 {
		t.Fatal(all, err)
	}
	none, err := evm.DecodeReceipt([]byte(strings.Replace(receiptText, `"status":"0x1"`, `"other":1`, 1)), func(evm.Log) bool { return false })
	if err != nil || len(none.Logs) != 0 || !none.Succeeded {
		t.Errorf("%+v, %v", none, err)
	}
}
