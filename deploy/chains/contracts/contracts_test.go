package contracts_test

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/deploy/chains/contracts"
	"intents.internal/deploy/chains/contracts/contractstest"
)

const chainID = 31337

func TestTestToken(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
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

func TestTestTether(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
	token := c.Deploy(t, "TestTether", "Test", "TEST", uint8(6))
	for _, amount := range []int64{2, 0, 3} {
		c.Send(t, 1, 0, token, "approve", c.Account(2), big.NewInt(amount))
	}
	if got := c.Revert(t, 1, 0, token, "approve", c.Account(2), big.NewInt(4)); got != "execution reverted" {
		t.Errorf("reverts with %q", got)
	}
}

// An attestation is of one order, output, solver and time. The recording of the Open Intents Framework cannot show it, since its
// oracle attests everything.
func TestSetAttestation(t *testing.T) {
	t.Parallel()
	c := contractstest.Start(t, chainID)
	settler, oracle := c.Deploy(t, "OutputSettlerSimple"), c.Deploy(t, "OwnedOracle", c.Account(1))
	id, other, solver := [32]byte{1}, [32]byte{2}, contracts.Word(c.Account(2))
	output := contracts.MandateOutput{
		Oracle: settler.Word(), Settler: settler.Word(), ChainId: big.NewInt(chainID), Amount: big.NewInt(5), Recipient: [32]byte{31: 7},
	}
	elsewhere := output
	elsewhere.Oracle = oracle.Word()
	deadline := big.NewInt(c.Now(t).Unix() + 3600)
	c.Send(t, 2, 10, settler, "fillOrderOutputs", id, []contracts.MandateOutput{output, elsewhere}, deadline, solver[:])
	at := uint32(c.Now(t).Unix())
	for _, refused := range []struct {
		want string
		args []any
	}{
		{"InvalidAttestation", []any{other, solver, at, output}},
		{"InvalidAttestation", []any{id, other, at, output}},
		{"InvalidAttestation", []any{id, solver, at + 1, output}},
		{"WrongOutputOracle", []any{id, solver, at, elsewhere}},
	} {
		if got := c.Revert(t, 3, 0, settler, "setAttestation", refused.args...); got != refused.want {
			t.Errorf("reverts with %q, want %q", got, refused.want)
		}
	}
	if got := c.Revert(t, 0, 0, oracle, "setAttestation", id, solver, at, elsewhere); got != "NotOwner" {
		t.Errorf("somebody else than the owner: %q", got)
	}
	c.Send(t, 3, 0, settler, "setAttestation", id, solver, at, output)
	c.Send(t, 1, 0, oracle, "setAttestation", id, solver, at, elsewhere)
	for _, attested := range []struct {
		at     contractstest.Deployed
		output contracts.MandateOutput
	}{{settler, output}, {oracle, elsewhere}} {
		if !proven(t, c, attested.at, attested.output, fillHash(solver, id, at, output)) {
			t.Error("the fill is not attested")
		}
		for _, fill := range [][32]byte{fillHash(solver, other, at, output), fillHash(other, id, at, output), fillHash(solver, id, at+1, output)} {
			if proven(t, c, attested.at, attested.output, fill) {
				t.Errorf("%x is attested", fill)
			}
		}
	}
}

func proven(t *testing.T, c *contractstest.Chain, oracle contractstest.Deployed, output contracts.MandateOutput, fill [32]byte) bool {
	t.Helper()
	return contractstest.Read[bool](t, c, oracle, "isProven", output.ChainId, output.Oracle, output.Settler, fill)
}

// fillHash is the hash of the framework's fill description, of an output with neither callback data nor context.
func fillHash(solver, orderID [32]byte, at uint32, output contracts.MandateOutput) [32]byte {
	return crypto.Keccak256Hash(slices.Concat(solver[:], orderID[:], big.NewInt(int64(at)).FillBytes(make([]byte, 4)),
		output.Token[:], common.BigToHash(output.Amount).Bytes(), output.Recipient[:], make([]byte, 2+2)))
}
