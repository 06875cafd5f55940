package e2e_test

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"intents.internal/loadtest/anvil"
	"intents.internal/pkg/testkit/asynctest"
)

// walkSigning has a wallet that owns no gas sign bridges: the local solver opens and fills one, and an account with gas relays another. A third is signed
// by Permit2, which is approved before, and taken back.
func (w *readmeWalk) walkSigning(t *testing.T) {
	key := must(crypto.GenerateKey())(t)
	poor := crypto.PubkeyToAddress(key.PublicKey)
	chain := &evmChain{Node: &anvil.Node{ChainID: 31337, URL: w.value("CHAIN_31337_RPC_URL")}}
	b := openTab(chromium(t), t)
	b.base = w.value("GATEWAY_URL")
	s := &sendWalk{tab: b, from: chain, wallet: &testWallet{
		chains: map[uint64]*evmChain{chain.ChainID: chain}, current: chain.ChainID, added: []uint64{chain.ChainID}, account: poor, key: key,
	}}
	s.wallet.install(b)
	b.open("/console/sign-in")
	b.signIn(w.value("ACCOUNT_EMAIL"), w.value("ACCOUNT_PASSWORD"))
	b.click(testEnvironment, "Overview")
	s.giveEuros(poor)

	t.Log("the solver opens and fills what a wallet without gas has signed")
	s.recordSigned(poor.Hex(), euro, "erc3009", "")
	b.inspect("sign")
	s.wallet.decline("eth_signTypedData_v4", 0)
	s.send("You declined in the wallet; nothing was signed.")
	s.wallet.decline("", 0)
	s.send("The signature is valid and stored.")
	s.shows("Done. No action needed.")
	b.says("filled")

	t.Log("an account with gas relays")
	s.recordSigned(poor.Hex(), euro, "erc3009", "relay-myself")
	s.send("The signature is valid and stored.")
	b.says("Relay it with a wallet that has gas")
	b.inspect("signed")
	b.click(`a[href$="/relay"]`, "from any account")
	b.inspect("relay")
	s.wallet.set(func() { s.wallet.account, s.wallet.key = common.HexToAddress(alice), nil })
	s.send("The transaction is reported.")
	s.shows("Done. No action needed.")
	b.says("filled")
	for _, method := range []string{"eth_getBalance", "eth_getTransactionCount"} {
		var got hexutil.Big
		chain.Call(t, &got, method, poor, "latest")
		if got.ToInt().Sign() != 0 {
			t.Errorf("%s of who only signed: %s", method, got.String())
		}
	}

	t.Log("Permit2 is approved, then signed for; what is cancelled is revoked")
	s.recordSigned(alice, localUSDC, "permit2", "relay-myself")
	b.inspect("sign-permit2")
	s.wallet.set(func() {})
	s.send("The signature is valid and stored.")
	if n := s.wallet.count("eth_sendTransaction"); n != 1 {
		t.Errorf("%d transactions before the signature, want an approval", n)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(b.path(), "/console/transfers/"), "?")
	must(apiClient(t, b.base, w.value("TEST_KEY")).Transfers.Cancel(t.Context(), id))(t)
	b.open("/console/transfers/"+id, "cancelled")
	b.inspect("cancelled-signed")
	b.click(`a[href$="/revoke"]`, "Revoke the signature")
	b.inspect("revoke")
	s.sendUnchecked("Nobody can use the signature any more.")
}

// giveEuros has Alice send an account the token that takes signed authorizations.
func (w *sendWalk) giveEuros(account common.Address) {
	w.t.Helper()
	data := append(append([]byte{0xa9, 0x05, 0x9c, 0xbb}, common.LeftPadBytes(account[:], 32)...), common.LeftPadBytes(big.NewInt(50_000_000).Bytes(), 32)...)
	var hash common.Hash
	w.from.Call(w.t, &hash, "eth_sendTransaction", map[string]any{"from": alice, "to": euro, "data": hexutil.Bytes(data)})
	asynctest.Succeeds(w.t, func() error {
		var receipt *anvil.Receipt
		w.from.Call(w.t, &receipt, "eth_getTransactionReceipt", hash)
		if receipt == nil {
			return errors.New("the transaction is in no block")
		}
		return nil
	})
}

// recordSigned records a bridge of 10 of a token to the other local chain, which its account authorizes by a signature.
func (w *sendWalk) recordSigned(account, token, scheme, reference string) {
	w.t.Helper()
	w.chooseChain(31337)
	w.do(chromedp.SetValue(chromedp.CSS("#destinationChain"), "eip155:31338"))
	w.click(confirmForm + ` button[formmethod="get"]`)
	w.fillTransfer(on(31337, token), "10", on(31338, token), "9")
	for field, value := range map[string]string{"#sourceAccount": account, "#reference": reference, "#signing": scheme} {
		w.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).value = %q`, field, value)))
	}
	w.inspect("new-transfer-signing")
	w.click(confirmButton, "Record this bridge?", "a signature by")
	w.recordConfirmed()
	w.says("Sign with your wallet", "Digest")
}

// sendUnchecked is send for a page without checks.
func (w *sendWalk) sendUnchecked(says string) {
	w.t.Helper()
	w.do(chromedp.Click(chromedp.CSS("[data-wallets] button:not(:disabled)")))
	w.shows(says)
}

// signTypedData is eth_signTypedData_v4 with JSON text, by a key.
func signTypedData(key *ecdsa.PrivateKey, param json.RawMessage) (hexutil.Bytes, error) {
	var text string
	var data apitypes.TypedData
	if err := json.Unmarshal(param, &text); err != nil {
		return nil, fmt.Errorf("not JSON text: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return nil, fmt.Errorf("not typed data: %w", err)
	}
	digest, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return nil, err
	}
	signature, err := crypto.Sign(digest, key)
	if err != nil {
		return nil, err
	}
	signature[64] += 27
	return signature, nil
}
