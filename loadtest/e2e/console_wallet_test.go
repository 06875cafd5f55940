package e2e_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/ethereum/go-ethereum/crypto"
)

// The key of a well-known development account, and the same wallet's address as wallets tend to write it.
const (
	walletKey     = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
	walletAddress = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
)

// signInWithWallet gives the page a wallet (EIP-1193) that signs like a real one.
func signInWithWallet(b *tab) {
	t := b.t
	b.open("/console/sign-in", http.StatusOK)
	if evaluate[bool](b, `!document.querySelector("[data-wallet]").hidden`) {
		t.Error("wallets are offered where there is none")
	}
	key, err := crypto.HexToECDSA(walletKey)
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.ExposeFunc("signInGo", func(_ context.Context, message string) (string, error) {
		text, err := hex.DecodeString(strings.TrimPrefix(message, "0x"))
		if err != nil {
			return "", err
		}
		hash := crypto.Keccak256(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d", len(text)), text)
		signature, err := crypto.Sign(hash, key)
		if err != nil {
			return "", err
		}
		signature[64] += 27
		return "0x" + hex.EncodeToString(signature), nil
	}))
	wallet := page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf(`window.ethereum = {declines: true, async request({method, params}) {
		switch (method) {
		case "eth_requestAccounts": return [%q];
		case "eth_chainId": return "0xaa36a7";
		case "personal_sign":
			if (this.declines) { this.declines = false; throw {code: 4001, message: "declined"}; }
			return await window.signInGo(params[0]);
		}
		throw new Error(method);
	}};`, walletAddress)}
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, wallet); err != nil {
		t.Fatal(err)
	}
	b.open("/console/sign-in?next=%2Fconsole%2Faccount", http.StatusOK)
	b.inspect("sign-in-wallet")
	b.declineThenSign()
	if got := b.path(); got != "/console/account" {
		t.Errorf("the wallet leads to %s", got)
	}
	b.says("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "none: you sign in another way")

	b.open("/console/account/link", http.StatusOK)
	b.inspect("link")
	b.declineThenSign()
	b.says("It is linked: you can sign in with it from now on.")
	b.open("/console/account/unlink?issuer=eip155&subject="+walletAddress, http.StatusOK)
	b.inspect("unlink")
	b.click("main button.danger", http.StatusBadRequest)
	b.says("This is the only way to sign in to your account.")
}

// declineThenSign presses the wallet's button twice: the wallet of signInWithWallet declines the first time on each page.
func (b *tab) declineThenSign() {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS("[data-wallet] button")))
	eventually(b.t, func() error {
		if said := b.of("#wallet-says"); said != "You declined in your wallet." {
			return fmt.Errorf("the page says %q", said)
		}
		return nil
	})
	b.click("[data-wallet] button", http.StatusOK)
}
