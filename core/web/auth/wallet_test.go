package auth_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestCreateNonce(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, func(c *webtest.Settings) { c.Identity.Limits.SignInPerIP = 3 })
	const notAddress = "must be an EVM address: 0x and 40 hexadecimal digits"
	for request, expected := range map[string]webtest.Answer{
		`{}`:                            webtest.Invalid(t, "/walletAddress", notAddress),
		`{"walletAddress":"alice.eth"}`: webtest.Invalid(t, "/walletAddress", notAddress),
		`{"walletAddress":"` + webtest.Alice + `","chainId":0}`:          webtest.Invalid(t, "/chainId", "must be an EIP-155 chain id, 1 to 9007199254740991"),
		`{"walletAddress":"` + webtest.Alice + `","chainId":"1"}`:        webtest.Invalid(t, "/chainId", "must not be a JSON string"),
		`{"walletAddress":"` + webtest.Alice + `","nonce":"mine12345"}`:  webtest.Invalid(t, "/nonce", "is not a known field"),
		`{"walletAddress":"0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266"}`: webtest.Invalid(t, "/walletAddress", "the address has a wrong EIP-55 checksum; copy it again or write it all in lower case"),
	} {
		webtest.Same(t, request, expected, s.Call(t, "POST", "/auth/siwe/nonce", request))
	}
	for _, request := range []string{`{"walletAddress":"` + webtest.Alice + `"}`, `{"walletAddress":"` + strings.ToLower(webtest.Alice) + `","chainId":1}`, `{"walletAddress":"` + webtest.Alice + `","chainId":null}`} {
		got := s.Call(t, "POST", "/auth/siwe/nonce", request)
		nonce, _ := got.Body.(map[string]any)["nonce"].(string)
		webtest.Same(t, request, webtest.Want(t, 200, `{"nonce":"`+nonce+`"}`, "Cache-Control", "no-store"), got)
		if stored := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM nonces WHERE encode(hash, 'hex') = $1`, webtest.HashOf(nonce)); stored != 1 || len(nonce) < 26 {
			t.Errorf("the nonce %q is stored %d times", nonce, stored)
		}
	}
	if got := s.Call(t, "POST", "/auth/siwe/nonce", `{"walletAddress":"`+webtest.Alice+`"}`); got.Status != 429 || got.Header["Retry-After"] == "" {
		t.Errorf("the fourth: %+v", got)
	}
}

func TestVerifySIWE(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	wallet := webtest.Wallet(t)
	stranger, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	const address = `,"walletAddress":"` + webtest.Alice + `"`
	in := webtest.Want(t, 200, `{"token":null,"success":true,"user":{"id":"<id>","walletAddress":"`+webtest.Alice+`","chainId":10}}`, "Set-Cookie", cookieSet, "Cache-Control", "no-store")
	mismatch := webtest.Refused(t, 401, "UNAUTHORIZED_SIWE_MESSAGE_MISMATCH", "The message is for another site, address or chain; have the wallet sign one that was made here.")
	unsigned := webtest.Refused(t, 401, "UNAUTHORIZED_INVALID_SIWE_SIGNATURE",
		"The message's address did not sign it: neither its key by personal_sign nor, as a smart account on the message's chain, its contract (ERC-1271, ERC-6492).")
	withoutNode := webtest.Refused(t, 401, "UNAUTHORIZED_SIWE_CHAIN_WITHOUT_NODE",
		"The key of the message's address did not sign it, and no node can be asked whether a smart account did: the operator must give the message's chain one in CORE_RPC_FILE.")
	for name, c := range map[string]struct {
		body     string
		expected webtest.Answer
	}{
		"a wallet":         {webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address), in},
		"with its chain":   {webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address+`,"chainId":10`), in},
		"in lower case":    {webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), strings.Replace(address, webtest.Alice, strings.ToLower(webtest.Alice), 1)), in},
		"another chain":    {webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address+`,"chainId":1`), mismatch},
		"another address":  {webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), `,"walletAddress":"`+webtest.Bob+`"`), mismatch},
		"another signer":   {webtest.SignedBody(t, stranger, webtest.WalletMessage(s.WalletNonce(t)), address), withoutNode},
		"no signature":     {`{"message":` + quoted(webtest.WalletMessage(s.WalletNonce(t))) + `,"signature":"0x"` + address + `}`, unsigned},
		"trailing garbage": {webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t))+"\n", address), webtest.Invalid(t, "/message", "is no ERC-4361 message: line 10 is one that the message has no place for")},
		"no message":       {`{"signature":"0x"` + address + `}`, webtest.Invalid(t, "/message", "is no ERC-4361 message: line 1 must be [scheme://]domain wants you to sign in with your Ethereum account:")},
		"no address":       {`{"message":"","signature":""}`, webtest.Invalid(t, "/walletAddress", "must be an EVM address: 0x and 40 hexadecimal digits")},
	} {
		webtest.Same(t, name, c.expected, s.Call(t, "POST", "/auth/siwe/verify", c.body))
	}

	body := webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address+`,"email":"ann@example.com"`) // which is ignored, as nothing proves it
	response := s.Send(t, "POST", "/auth/siwe/verify", body)
	webtest.ReadAll(t, response)
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	got := s.Call(t, "GET", "/auth/get-session", "", "Cookie", cookie)
	if user, _ := got.Body.(map[string]any)["user"].(map[string]any); user["name"] != webtest.Alice || user["email"] != strings.ToLower(webtest.Alice)+"@eip155.invalid" {
		t.Errorf("signed in as %v", user)
	}
	if got := s.Call(t, "POST", "/auth/siwe/verify", body); got.Status != 401 {
		t.Errorf("the same message again: %+v", got)
	}
	if strings.Contains(s.Log.String(), "Nonce:") || strings.Contains(s.Log.String(), webtest.Alice) {
		t.Errorf("a message is in the log:\n%s", s.Log)
	}
	pgtest.Exec(t, s.Store, `UPDATE accounts SET disabled_at = now()`)
	webtest.Same(t, "disabled", webtest.Refused(t, 403, "ACCOUNT_DISABLED", "The account is disabled; ask the operator."),
		s.Call(t, "POST", "/auth/siwe/verify", webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address)))
	shut := webtest.StartOn(t, s.Store, func(c *webtest.Settings) { c.Identity.SignUpOpen = false })
	webtest.Same(t, "sign-up closed", webtest.Refused(t, 403, "SIGN_UP_CLOSED", "Sign-up is closed; ask the operator for an account."),
		shut.Call(t, "POST", "/auth/siwe/verify", webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address)))
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// A wallet that is listed signs in to nothing and is linked to nothing; other ways go on.
func TestVerifySIWE_Screened(t *testing.T) {
	t.Parallel()
	list := webtest.NewScreened(t)
	s := webtest.StartOn(t, list.Store, list.Settings)
	wallet, ann := webtest.Wallet(t), s.SignUp(t, "ann@example.com")
	const address = `,"walletAddress":"` + webtest.Alice + `"`
	signed := webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address)
	list.List(t, webtest.Alice)
	webtest.Same(t, "sign in", webtest.NotAllowed(t, "/walletAddress"), s.Example(t, "a wallet that is not served", "POST", "/auth/siwe/verify", signed))
	webtest.Same(t, "link", webtest.NotAllowed(t, "/walletAddress"), s.Example(t, "a wallet that is not served", "POST", "/auth/siwe/link", signed, ann...))
	if got := s.Call(t, "GET", "/auth/get-session", "", ann...); got.Status != 200 || got.Body == nil {
		t.Errorf("a session is ended: %+v", got)
	}
	want := []string{"siwe wallet " + webtest.Alice + " Lazarus Group", "siwe wallet " + webtest.Alice + " Lazarus Group account"}
	if diff := cmp.Diff(want, list.Hits(t)); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	list.Delist(t, webtest.Alice)
	if got := s.Call(t, "POST", "/auth/siwe/verify", signed); got.Status != 200 { // the nonce was not used up
		t.Errorf("taken out: %+v", got)
	}
	list.Unlogged(t, s.Log)
}
