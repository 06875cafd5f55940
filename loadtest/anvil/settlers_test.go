package anvil_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/anvil"
)

// skipped are the cases that are not replayed, and why.
var skipped = map[string]string{
	"bridge opened by openFor with the signature 0xff":                     "openFor is left out",
	"open with native input (token 0), which this contract does not know":  "our settler takes native inputs",
	"open of zero amount for user 0 is allowed":                            "our settler refuses user 0, as the one with native inputs does",
	"Dutch auction (context 0x01): more than amount is paid":               "auctions are left out",
	"native input, sender without the native":                              "no transaction is sent",
	"openForAndFinalise with ERC-3009: another Open event, no order in it": "openForAndFinalise is left out",
	"governance fee of 1 %: claim":                                         "the fee is left out",
}

// approvals are the allowances of the cases that do not have their order's amount.
var approvals = map[string]int64{"no allowance": 0, "allowance too small": 999_999}

// The contracts answer as those of the Open Intents Framework do: the same calls succeed, revert with the same data, leave the same
// logs byte for byte and the same state.
func TestSettlers_Recording(t *testing.T) {
	t.Parallel()
	r := readRecording(t)
	w := startReplay(t, r)
	for name := range skipped {
		if !slices.ContainsFunc(r.Cases, func(c recordedCase) bool { return c.Name == name }) {
			t.Errorf("no case %q", name)
		}
	}
	for _, c := range r.Cases {
		if skipped[c.Name] == "" {
			w.replay(t, c)
		}
	}
}

// replayedChain is a chain of the recording with our contracts at the recorded addresses.
type replayedChain struct {
	*anvil.Node
	input, native, output, oracle, usd6, wad18 anvil.Deployed
}

type replay struct {
	accounts map[string]common.Address
	chains   map[uint64]*replayedChain
}

// startReplay starts both chains some time before the recording, which sets the time of each block.
func startReplay(t *testing.T, r recording) *replay {
	t.Helper()
	w := &replay{accounts: r.Contracts.Accounts, chains: map[uint64]*replayedChain{}}
	first := time.Unix(int64(r.Cases[0].Steps[0].Time), 0)
	for _, at := range r.Chains {
		n := anvil.Start(t, anvil.Config{ChainID: at.ChainID, Genesis: first.Add(-time.Hour)})
		c := &replayedChain{Node: n}
		c.input = c.place(t, at.InputSettler, "InputSettlerEscrow")
		c.native = c.place(t, at.NativeEscrow, "InputSettlerEscrow")
		c.output = c.place(t, at.OutputSettler, "OutputSettlerSimple")
		c.oracle = c.place(t, at.Oracle, "OwnedOracle", w.accounts["deployer"])
		c.usd6 = c.place(t, at.USD6, "TestToken", "USD", "USD", uint8(6), false)
		c.wad18 = c.place(t, at.WAD18, "TestToken", "WAD", "WAD", uint8(18), false)
		for _, token := range []anvil.Deployed{c.usd6, c.wad18} {
			for _, name := range []string{"user", "sponsor", "solver", "otherSolver", "attacker"} {
				account := w.accounts[name]
				c.Execute(t, token.Transaction(t, account, "mint", account, new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)))
				if name != "user" && name != "sponsor" {
					c.Execute(t, token.Transaction(t, account, "approve", c.output.Address, math.MaxBig256))
				}
			}
		}
		c.Call(t, nil, "anvil_setCode", at.RecipientWithCode, "0x00")   // STOP
		c.Call(t, nil, "anvil_setCode", at.FalseToken, "0x60206000f3")  // return 32 bytes of zero
		c.Call(t, nil, "anvil_setCode", at.SilentToken, "0x60006000fd") // revert without data
		w.chains[at.ChainID] = c
	}
	return w
}

// place deploys a contract and copies its code to an address, which must not be the deployer's next one.
func (c *replayedChain) place(t *testing.T, to common.Address, name string, args ...any) anvil.Deployed {
	t.Helper()
	d := c.Deploy(t, c.Accounts[9], anvil.Compiled(t, name), args...)
	var code hexutil.Bytes
	c.Call(t, &code, "eth_getCode", d.Address, "latest")
	c.Call(t, nil, "anvil_setCode", to, code)
	d.Address = to
	return d
}

// replay repeats the steps of a case and compares what each leaves.
func (w *replay) replay(t *testing.T, c recordedCase) {
	t.Helper()
	want := state{FillRecord: slices.Repeat([]string{"0"}, len(c.Order.Outputs))}
	open := slices.IndexFunc(c.Steps, func(s recordedStep) bool { return strings.HasPrefix(s.Data, "0x7515fd56") })
	for n, step := range c.Steps {
		if n == open && !strings.HasPrefix(c.Steps[0].Step, "approve") {
			w.prepare(t, c, step)
		}
		w.step(t, c, step)
		if step.After != nil {
			want = *step.After
		}
		if diff := cmp.Diff(want, w.state(t, c)); diff != "" {
			t.Errorf("%s: %s: state (-recorded +ours):\n%s", c.Name, step.Step, diff)
		}
	}
}

// prepare approves the input before the first open, which the recording mostly does not show.
func (w *replay) prepare(t *testing.T, c recordedCase, step recordedStep) {
	t.Helper()
	at, in := w.chains[step.Chain], c.order().Inputs[0]
	if strings.Contains(step.Revert.String(), "08c379a0") { // the token of these cases refuses with a string
		data := step.Revert
		code := append([]byte{0x60, byte(len(data)), 0x60, 12, 0x60, 0, 0x39, 0x60, byte(len(data)), 0x60, 0, 0xfd}, data...)
		at.Call(t, nil, "anvil_setCode", common.BigToAddress(in[0]), hexutil.Bytes(code))
	}
	if !slices.Contains([]common.Address{at.usd6.Address, at.wad18.Address}, common.BigToAddress(in[0])) {
		return
	}
	amount := in[1]
	if other, exists := approvals[c.Name]; exists {
		amount = big.NewInt(other)
	}
	token := at.usd6
	token.Address = common.BigToAddress(in[0])
	at.executeAt(t, step.Time-1, token.Transaction(t, w.accounts[step.From], "approve", step.To, amount))
}

// executeAt sends a transaction in a block at a time.
func (c *replayedChain) executeAt(t *testing.T, second uint64, tx anvil.Transaction) anvil.Receipt {
	t.Helper()
	c.Call(t, nil, "evm_setNextBlockTimestamp", second)
	tx.Gas = 2_000_000
	return c.Mined(t, c.Send(t, tx))
}

func (w *replay) step(t *testing.T, c recordedCase, step recordedStep) {
	t.Helper()
	at := w.chains[step.Chain]
	tx := anvil.Transaction{From: w.accounts[step.From], To: &step.To, Data: w.data(t, c, step)}
	if step.Value != "" {
		tx.Value = (*hexutil.Big)(number(step.Value))
	}
	had := at.balance(t, c.Order.User)
	receipt := at.executeAt(t, step.Time, tx)
	if uint64(receipt.Status) != step.Status {
		t.Errorf("%s: %s: status %d, want %d", c.Name, step.Step, receipt.Status, step.Status)
	}
	if diff := cmp.Diff(w.recordedLogs(t, c, step), at.logs(receipt, step)); diff != "" {
		t.Errorf("%s: %s: logs (-recorded +ours):\n%s", c.Name, step.Step, diff)
	}
	if step.Status == 0 {
		if diff := cmp.Diff(step.Revert.String(), at.revert(t, tx)); diff != "" {
			t.Errorf("%s: %s: revert data (-recorded +ours):\n%s", c.Name, step.Step, diff)
		}
	}
	if got := new(big.Int).Sub(at.balance(t, c.Order.User), had); step.UserGot != "" && got.String() != step.UserGot {
		t.Errorf("%s: %s: the user got %s, want %s", c.Name, step.Step, got, step.UserGot)
	}
	if rest := at.balance(t, at.output.Address); rest.Sign() != 0 {
		t.Errorf("%s: %s: %s wei are left at the output settler", c.Name, step.Step, rest)
	}
	w.attest(t, step, receipt)
}

// attest does what the relay does: a fill of one chain is attested on the other. The recording's oracle says yes to everything.
func (w *replay) attest(t *testing.T, step recordedStep, receipt anvil.Receipt) {
	t.Helper()
	filled := w.chains[step.Chain].output.ABI.Events["OutputFilled"].ID
	for _, l := range receipt.Logs {
		if l.Topics[0] != filled {
			continue
		}
		for id, other := range w.chains {
			if id != step.Chain {
				other.executeAt(t, step.Time, other.oracle.Attestation(t, w.accounts["deployer"], receipt))
			}
		}
	}
}

func (c *replayedChain) balance(t *testing.T, account common.Address) *big.Int {
	t.Helper()
	var balance hexutil.Big
	c.Call(t, &balance, "eth_getBalance", account, "latest")
	return balance.ToInt()
}

// revert returns the data that a call reverts with in the newest block, nothing if it succeeds.
func (c *replayedChain) revert(t *testing.T, tx anvil.Transaction) (data string) {
	t.Helper()
	err := c.Try(t.Context(), nil, "eth_call", tx, "latest")
	if err == nil {
		return ""
	}
	if answer, ok := errors.AsType[*anvil.CallError](err); ok && json.Unmarshal(answer.Data, &data) == nil {
		return data
	}
	return err.Error()
}

// logs are those of the settlers, and those of tokens where the recording has them.
func (c *replayedChain) logs(receipt anvil.Receipt, step recordedStep) (all []anvil.Log) {
	settlers := []common.Address{c.input.Address, c.native.Address, c.output.Address}
	withTokens := slices.ContainsFunc(step.Logs, func(l recordedLog) bool { return !slices.Contains(settlers, l.Address) })
	for _, l := range receipt.Logs {
		if withTokens || slices.Contains(settlers, l.Address) {
			all = append(all, l)
		}
	}
	return all
}

// state reads what the settlers say about the case's order.
func (w *replay) state(t *testing.T, c recordedCase) (s state) {
	t.Helper()
	origin := w.chains[c.order().OriginChainId.Uint64()]
	input := origin.input
	if c.Variant == "NativeEscrow" {
		input = origin.native
	}
	s.OrderStatus = anvil.Read[uint8](t, origin.Node, input, "orderStatus", c.OrderID)
	for _, output := range c.order().Outputs {
		at := w.chains[output.ChainId.Uint64()]
		record := common.Hash(anvil.Read[[32]byte](t, at.Node, at.output, "getFillRecord", c.OrderID, output))
		s.FillRecord = append(s.FillRecord, strings.Replace(record.Hex(), common.Hash{}.Hex(), "0", 1))
	}
	return s
}
