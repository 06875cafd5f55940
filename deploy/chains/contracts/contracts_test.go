package contracts_test

import (
	"math/big"
	"testing"

	"intents.internal/deploy/chains/contracts/contractstest"
)

func TestTestToken(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, 31337)
	token := c.Deploy(t, "TestToken", "Test", "TEST", uint8(6), true)
	c.Send(t, 1, 0, token, "mint", c.Account(1), big.NewInt(1000))
	c.Send(t, 1, 0, token, "transfer", c.Account(2), big.NewInt(1000))
	if got := contractstest.Read[*big.Int](t, c, token, "balanceOf", c.Account(2)); got.Int64() != 990 {
		t.Errorf("balance %s", got)
	}
	if got := c.Revert(t, 1, 0, token, "transfer", c.Account(2), big.NewInt(1)); got != "ERC20InsufficientBalance" {
		t.Errorf("reverts with %q", got)
	}
}
