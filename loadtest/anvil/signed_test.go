package anvil_test

import (
	"encoding/json"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/anvil"
)

// signedRecording is what a settler of the Open Intents Framework, Permit2 and Circle's FiatTokenV2_2 answered to signatures; its member
// about.reading explains it.
type signedRecording struct {
	Chain struct {
		ChainID                                                       uint64
		Permit2                                                       common.Address
		Settlers                                                      map[string]common.Address
		USD6, FiatTokenV2_2, WETH9, FeeToken, VRSToken, WalletFactory common.Address
		Wallet                                                        common.Address
		Accounts                                                      map[string]common.Address
	}
	Cases, Transfers []signedCase
	Probes           []struct {
		Settler, Witness, Token, Probe string
		To                             common.Address
		Data, Revert                   hexutil.Bytes
		Time                           uint64
	}
}

type signedCase struct {
	Name, Settler       string
	OrderID             common.Hash
	Order               recordedOrder
	Sponsor             string
	Signature, Calldata hexutil.Bytes
	Steps               []signedStep
}

type signedStep struct {
	Step, From   string
	To           common.Address
	Value, Data  string
	Time, Status uint64
	Revert       hexutil.Bytes
	Logs         []recordedLog
	// Token is what the token itself answers to the settler.
	Token *struct{ Revert hexutil.Bytes }
	After *signedState
}

// signedState is what a case left: the payer is the one whose tokens are the input.
type signedState struct {
	OrderStatus                  uint8
	SettlerBalance, PayerBalance string
	Permit2NonceUsed             bool
}

// head is the settler of the recording that ours follows. Of the two others, older ones, each has a witness of its own.
const head = "head"

// unreplayed are the cases that are not replayed, and why.
var unreplayed = map[string]string{
	"3009: payer on the token's blacklist": "our token has no blacklist",
	"3009: token paused":                   "our token cannot be paused",
}

// ownReverts is the data of the steps that end otherwise with our contracts, by case and step.
func (w *signedReplay) ownReverts(t *testing.T) map[[2]string]hexutil.Bytes {
	t.Helper()
	return map[[2]string]hexutil.Bytes{
		// Our token gives its reason where the recorded one overflows.
		{"permit2: fee-on-transfer token", "refund after expires"}: revertData(t, w.usd6, "ERC20InsufficientBalance",
			w.input.Address, big.NewInt(990_000), big.NewInt(1_000_000)),
		{"3009: WETH9 and no payment at all (head)", "openFor"}: w.unpaid(t, math.BigPow(10, 18)),
	}
}

// unpaid is the answer to a token that lets every call succeed. Our settler compares its balance, as newer ones do; the recorded one opens
// the order.
func (w *signedReplay) unpaid(t *testing.T, amount *big.Int) hexutil.Bytes {
	t.Helper()
	return revertData(t, w.input, "InvalidBalanceDelta", amount, new(big.Int))
}

func revertData(t *testing.T, d anvil.Deployed, name string, args ...any) hexutil.Bytes {
	t.Helper()
	e := d.ABI.Errors[name]
	data, err := e.Inputs.Pack(args...)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(e.ID[:4], data)
}

// The settler, the stand-in for Permit2 and the token answer to signed orders and transfers as the recorded contracts do: the same calls
// succeed, revert with the same data, leave the same logs and the same state.
func TestSigned_Recording(t *testing.T) {
	t.Parallel()
	r := readSignedRecording(t)
	w := startSignedReplay(t, r)
	for name := range unreplayed {
		if !slices.ContainsFunc(r.Cases, func(c signedCase) bool { return c.Name == name }) {
			t.Errorf("no case %q", name)
		}
	}
	for _, c := range r.Cases {
		if c.Settler == head && unreplayed[c.Name] == "" {
			w.replay(t, c)
		}
	}
	w.probe(t, r)
	for _, c := range r.Transfers {
		w.replay(t, c)
	}
}

func readSignedRecording(t *testing.T) (r signedRecording) {
	t.Helper()
	text, err := os.ReadFile("../../core/transfer/testdata/recorded_gasless.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// signedReplay is the chain of the recording with our contracts at the recorded addresses.
type signedReplay struct {
	*replayedChain
	accounts      map[string]common.Address
	walletFactory common.Address
	permit2, fiat anvil.Deployed
	reverts       map[[2]string]hexutil.Bytes
}

func startSignedReplay(t *testing.T, r signedRecording) *signedReplay {
	t.Helper()
	first, at := time.Unix(int64(r.Cases[0].Steps[0].Time), 0), r.Chain
	c := &replayedChain{Node: anvil.Start(t, anvil.Config{ChainID: at.ChainID, Genesis: first.Add(-time.Hour)})}
	w := &signedReplay{replayedChain: c, accounts: at.Accounts, walletFactory: at.WalletFactory}
	c.input = c.place(t, at.Settlers[head], "InputSettlerEscrow")
	c.usd6 = c.place(t, at.USD6, "TestToken", "USD", "USD", uint8(6), false)
	fee := c.place(t, at.FeeToken, "TestToken", "FEE", "FEE", uint8(6), true)
	c.place(t, at.VRSToken, "TestToken", "VRS", "VRS", uint8(6), false) // to the settler it is a token without the form that it calls
	c.Call(t, nil, "anvil_setCode", at.WETH9, "0x60206000f3")           // every call succeeds and returns zero
	w.permit2 = c.place(t, at.Permit2, "Permit2")
	w.fiat = c.place(t, at.FiatTokenV2_2, "TestFiatToken", "USD Coin", "USDC", uint8(6))
	wallet := c.place(t, at.Wallet, "SmartAccount", w.accounts["walletOwner"])
	for _, name := range []string{"user", "sponsor", "attacker", "delegated", "delegatedSilent"} {
		account := w.accounts[name]
		for _, token := range []anvil.Deployed{c.usd6, fee, w.fiat} {
			c.Execute(t, token.Transaction(t, account, "mint", account, big.NewInt(1_000_000_000)))
		}
		for _, token := range []anvil.Deployed{c.usd6, fee} {
			c.Execute(t, token.Transaction(t, account, "approve", w.permit2.Address, math.MaxBig256))
		}
	}
	c.Execute(t, c.usd6.Transaction(t, w.accounts["sponsor"], "approve", c.input.Address, math.MaxBig256)) // for the type 0xff
	c.Execute(t, c.usd6.Transaction(t, w.accounts["user"], "mint", wallet.Address, big.NewInt(1_000_000_000)))
	c.Execute(t, w.fiat.Transaction(t, w.accounts["user"], "mint", wallet.Address, big.NewInt(1_000_000_000)))
	type call struct {
		To    common.Address
		Value *big.Int
		Data  []byte
	}
	approve := call{c.usd6.Address, new(big.Int), c.usd6.Pack(t, "approve", w.permit2.Address, math.MaxBig256)}
	c.Execute(t, wallet.Transaction(t, w.accounts["walletOwner"], "execute", []call{approve}))
	// What counts of an account's delegation (EIP-7702) is that it has code, and whether that answers by ERC-1271.
	c.place(t, w.accounts["delegated"], "SmartAccount", w.accounts["delegated"])
	c.place(t, w.accounts["delegatedSilent"], "OwnedOracle", w.accounts["deployer"])
	w.reverts = w.ownReverts(t)
	return w
}

// replay repeats the steps of a case and compares what each leaves.
func (w *signedReplay) replay(t *testing.T, c signedCase) {
	t.Helper()
	for _, step := range c.Steps {
		if step.To == w.walletFactory { // the recorded wallets have another factory
			w.place(t, c.Order.User, "SmartAccount", w.accounts["walletOwner"])
			continue
		}
		w.step(t, c, step)
	}
}

func (w *signedReplay) step(t *testing.T, c signedCase, step signedStep) {
	t.Helper()
	data := c.Calldata
	if step.Data != "{calldata}" {
		data = common.FromHex(step.Data)
	}
	tx := anvil.Transaction{From: w.accounts[step.From], To: &step.To, Data: data}
	if step.Value != "" {
		tx.Value = (*hexutil.Big)(number(step.Value))
	}
	own, differs := w.reverts[[2]string{c.Name, step.Step}]
	if differs {
		step.Status, step.Revert, step.Logs, step.After = 0, own, nil, nil
	}
	receipt := w.executeAt(t, step.Time, tx)
	if uint64(receipt.Status) != step.Status {
		t.Errorf("%s: %s: status %d, want %d", c.Name, step.Step, receipt.Status, step.Status)
	}
	if diff := cmp.Diff(w.signedLogs(t, c, step), receipt.Logs); diff != "" {
		t.Errorf("%s: %s: logs (-recorded +ours):\n%s", c.Name, step.Step, diff)
	}
	if step.Status == 0 {
		if diff := cmp.Diff(step.Revert.String(), w.revert(t, tx)); diff != "" {
			t.Errorf("%s: %s: revert data (-recorded +ours):\n%s", c.Name, step.Step, diff)
		}
	}
	if step.Token != nil {
		if diff := cmp.Diff(reason(step.Token.Revert), reason(common.FromHex(w.revert(t, w.authorization(t, c))))); diff != "" {
			t.Errorf("%s: %s: the token's answer (-recorded +ours):\n%s", c.Name, step.Step, diff)
		}
	}
	if step.After == nil {
		return
	}
	if diff := cmp.Diff(*step.After, w.signedState(t, c)); diff != "" {
		t.Errorf("%s: %s: state (-recorded +ours):\n%s", c.Name, step.Step, diff)
	}
}

func (w *signedReplay) signedLogs(t *testing.T, c signedCase, step signedStep) []anvil.Log {
	t.Helper()
	all := []anvil.Log{}
	for _, l := range step.Logs {
		data := common.FromHex(l.Data)
		if l.Data == "{encoded}" {
			data = w.input.Pack(t, "open", c.order())[4:]
		}
		all = append(all, anvil.Log{Address: l.Address, Topics: l.Topics, Data: data})
	}
	return all
}

// reason is the text of a revert, since the recorded token's compiler leaves bytes of its memory behind it, or else the data.
func reason(data []byte) string {
	if text, err := abi.UnpackRevert(data); err == nil {
		return text
	}
	return hexutil.Encode(data)
}

func (c signedCase) order() anvil.StandardOrder { return recordedCase{Order: c.Order}.order() }

// payer is the account whose tokens are the input.
func (w *signedReplay) payer(c signedCase) common.Address {
	if c.Sponsor != "" {
		return w.accounts[c.Sponsor]
	}
	return c.Order.User
}

// authorization is the settler's call of the token.
func (w *signedReplay) authorization(t *testing.T, c signedCase) anvil.Transaction {
	t.Helper()
	o := c.order()
	tx := w.fiat.Transaction(t, w.input.Address, "receiveWithAuthorization",
		w.payer(c), w.input.Address, o.Inputs[0][1], new(big.Int), new(big.Int).SetUint64(uint64(o.FillDeadline)), c.OrderID, []byte(c.Signature[1:]))
	token := common.BigToAddress(o.Inputs[0][0])
	tx.To = &token
	return tx
}

func (w *signedReplay) signedState(t *testing.T, c signedCase) signedState {
	t.Helper()
	o := c.order()
	token := w.usd6
	token.Address = common.BigToAddress(o.Inputs[0][0])
	used := anvil.Read[*big.Int](t, w.Node, w.permit2, "nonceBitmap", w.payer(c), new(big.Int).Rsh(o.Nonce, 8))
	return signedState{
		OrderStatus:      anvil.Read[uint8](t, w.Node, w.input, "orderStatus", c.OrderID),
		SettlerBalance:   anvil.Read[*big.Int](t, w.Node, token, "balanceOf", w.input.Address).String(),
		PayerBalance:     anvil.Read[*big.Int](t, w.Node, token, "balanceOf", w.payer(c)).String(),
		Permit2NonceUsed: used.Bit(int(o.Nonce.Uint64()&255)) == 1,
	}
}

// probe repeats the calls by which a deployment and a token are recognized.
func (w *signedReplay) probe(t *testing.T, r signedRecording) {
	t.Helper()
	for _, p := range r.Probes {
		if p.Settler != head && p.Token == "" {
			continue
		}
		tx := anvil.Transaction{From: w.input.Address, To: &p.To, Data: p.Data}
		if p.Settler == head {
			tx.From, tx.To = w.accounts["relayer"], &w.input.Address
		}
		w.PassTime(t, time.Unix(int64(p.Time), 0))
		want := p.Revert.String()
		switch {
		case strings.HasPrefix(p.Probe, "an unpaid"):
			want = w.unpaid(t, big.NewInt(1)).String()
		case p.Revert == nil:
			want = ""
		}
		if diff := cmp.Diff(want, w.revert(t, tx)); diff != "" {
			t.Errorf("probe %s%s, %s%s (-recorded +ours):\n%s", p.Settler, p.Token, p.Witness, p.Probe, diff)
		}
	}
}
