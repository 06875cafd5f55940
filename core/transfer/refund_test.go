package transfer_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

// The refund is sent on the source chain and costs nothing but gas, whatever the input is.
func TestIntent_Refund(t *testing.T) {
	t.Parallel()
	for _, input := range []string{usdc, registry.NativeAddress} {
		intent := newIntent(transfer.Bridge)
		intent.Status, intent.Source.Token.Address = transfer.Confirmed, input
		got, err := intent.Refund()
		if err != nil {
			t.Fatal(err)
		}
		want := &transfer.Tx{
			Call:  transfer.Call{To: inputSettler, Value: new(big.Int), Data: common.FromHex(wantEncodings(intent)["refund"])},
			Chain: sepolia, From: alice,
		}
		if diff := cmp.Diff(want, got, bigInts); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", input, diff)
		}
	}
}
