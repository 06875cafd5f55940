package console_test

import (
	"crypto/ecdsa"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"golang.org/x/net/html"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
)

// signing is what the script of a page is told to have signed, and where an approval is missing, sent before.
type signing struct {
	ID, Chain, TypedData string
	Calls                struct {
		From  string
		Calls []struct{ To, Data string }
	}
	Allowances []allowance
}

func (a *answer) signing() (s signing) {
	a.t.Helper()
	n := a.find(func(n *html.Node) bool { return attribute(n, "data-sign") != "" })
	if n == nil {
		a.t.Fatalf("%s offers nothing to sign:\n%s", a.what, a.text())
	}
	if err := json.Unmarshal([]byte(attribute(n, "data-sign")), &s); err != nil {
		a.t.Fatal(err)
	}
	return s
}

// signed is the signature that a wallet makes of typed data.
func signed(t *testing.T, key *ecdsa.PrivateKey, typedData string) string {
	t.Helper()
	var data apitypes.TypedData
	if err := json.Unmarshal([]byte(typedData), &data); err != nil {
		t.Fatal(err)
	}
	digest, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := crypto.Sign(digest, key)
	if err != nil {
		t.Fatal(err)
	}
	signature[64] += 27
	return hexutil.Encode(signature)
}

// viewer is a browser of somebody who only reads what is ann's.
func (s *site) viewer(t *testing.T) *browser {
	t.Helper()
	owner := s.ann(t).ID
	bob := s.signedUp(t, "bob@example.com")
	pgtest.Exec(t, s.store, `INSERT INTO members (account_id, person_id, role, created_at)
		SELECT $1, id, 'viewer', now() FROM accounts WHERE email = 'bob@example.com'`, owner)
	bob.post("/console/accounts/act", "account", owner.String()).leadsTo("/console/accounts?done=acting")
	return bob
}

// An intent that its user signs, from the form to its transaction, and to the end of its signature where it is cancelled. Only those who may send have
// the signature.
func TestSignTransfer(t *testing.T) {
	t.Parallel()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	viewer := s.viewer(t)
	account := crypto.PubkeyToAddress(key.PublicKey).Hex()
	for _, c := range []struct{ scheme, name, primaryType, revocation string }{
		{"erc3009", "ERC-3009", "ReceiveWithAuthorization", "CancelAuthorization"},
		{"permit2", "Permit2", "PermitBatchWitnessTransferFrom", "0x3ff9dcb1"},
	} {
		record := ann.confirm(payment(keyID, "sourceAccount", account, "destinationToken", sepoliaWETH, "destinationAmount", "1", "signing", c.scheme),
			"Authorized by a signature by "+c.name)
		recorded := ann.post(newTransferPath+"/record", record...).header.Get("Location")
		path, done, _ := strings.Cut(recorded, "?")
		page := ann.get(recorded).is(http.StatusOK, "The intent is recorded. Nothing moves yet", "Sign with your wallet", "Signed not yet", "Digest 0x")
		told := page.signing()
		permit2 := c.scheme == "permit2"
		if done != "done=recorded-to-sign" || page.offers("data-send") || told.Calls.From != account || !strings.Contains(told.TypedData, `"primaryType":"`+c.primaryType+`"`) ||
			permit2 != (len(told.Allowances) == 1) || permit2 != (len(told.Calls.Calls) == 1) {
			t.Errorf("%s: the script is told %+v", c.scheme, told)
		}
		ann.get(path+"/relay").is(http.StatusConflict, "The transfer has no signature yet, so there is nothing to send.")
		ann.get(path+"/revoke").is(http.StatusConflict, "Nothing to revoke")

		signature := signed(t, key, told.TypedData)
		other, _ := crypto.GenerateKey()
		for _, bad := range []struct {
			signature string
			status    int
			problem   string
		}{
			{"", http.StatusBadRequest, "A signature is 0x and at least 128 hexadecimal digits."},
			{signature[:129], http.StatusBadRequest, "A signature is 0x and at least 128 hexadecimal digits."},
			{signature[2:], http.StatusBadRequest, "A signature is 0x and at least 128 hexadecimal digits."},
		} {
			ann.post(path+"/signature", "signature", bad.signature).is(bad.status).tied("signature", bad.problem)
		}
		ann.post(path+"/signature", "signature", signed(t, other, told.TypedData)).is(http.StatusUnprocessableEntity, "no node of this chain to ask")
		viewer.post(path+"/signature", "signature", signature).is(http.StatusForbidden, "Not with your role")
		ann.post(path+"/signature", "signature", " "+signature).leadsTo(path + "?done=signed")

		ann.get(path+"?done=signed").is(http.StatusOK, "The signature is valid and stored.", "Relay it with a wallet that has gas on Sepolia", "Sign again")
		relay := ann.get(path+"/relay").is(http.StatusOK, "Any account on Sepolia can send this transaction", "from any account")
		sent := relay.sending()
		if sent.Calls.From != "" || len(sent.Calls.Calls) != 1 || !strings.HasPrefix(sent.Calls.Calls[0].Data, "0x49927074") || len(sent.Allowances) != 0 ||
			!strings.Contains(sent.Calls.Calls[0].Data, signature[2:]) || !relay.offers("data-report") {
			t.Errorf("%s: the script is told %+v", c.scheme, sent)
		}
		read := viewer.get(path).is(http.StatusOK, "A developer or owner of the account can do that.")
		if own := ann.get(path); strings.Contains(read.body+own.body, signature[2:]) || read.offers("data-sign") || strings.Contains(read.body, "/relay") {
			t.Errorf("%s: the page of the intent has its signature", c.scheme)
		}
		viewer.get(path+"/relay").is(http.StatusForbidden, "Not with your role")

		pgtest.Exec(t, s.store, "UPDATE transfers SET status = 'cancelled', signature = NULL WHERE id = $1", strings.TrimPrefix(path, "/console/transfers/"))
		ann.get(path).is(http.StatusOK, "cancelled", "Revoke it on Sepolia")
		ann.get(path + "/relay").is(http.StatusConflict)
		viewer.get(path).is(http.StatusOK, "A developer or owner of the account can revoke it.")
		revoke := ann.get(path+"/revoke").is(http.StatusOK, "Revoke the signature")
		if permit2 {
			if sent := revoke.sending(); sent.Calls.From != account || !strings.HasPrefix(sent.Calls.Calls[0].Data, c.revocation) || revoke.offers("data-report") {
				t.Errorf("the script is told %+v", sent)
			}
		} else if told := revoke.signing(); told.Calls.From != account || !strings.Contains(told.TypedData, c.revocation) || revoke.offers("data-signature") {
			t.Errorf("the script is told %+v", told)
		}
	}
}

// The page has the permit that spares the approval of Permit2 its gas, where a node tells its nonce, for those who sign.
func TestSignTransfer_Permit(t *testing.T) {
	t.Parallel()
	p := newPayer(t)
	viewer := p.viewer(t)
	p.chain.SetFunction(usdc, rpctest.NewSelector("nonces(address)"), func(rpctest.Call) ([]byte, error) { return rpctest.Word(7), nil })
	const permit = "Sign a permit"
	for scheme, wants := range map[string]bool{"permit2": true, "erc3009": false} {
		record := p.browser.confirm(payment(p.keyID, "destinationToken", sepoliaWETH, "destinationAmount", "1", "signing", scheme))
		path, _, _ := strings.Cut(p.post(newTransferPath+"/record", record...).header.Get("Location"), "?")
		page := p.get(path).is(http.StatusOK)
		text := page.text()
		if has := strings.Contains(text, permit) && strings.Contains(text, `"primaryType":"Permit"`) && strings.Contains(text, `"nonce":"7"`); has != wants {
			t.Errorf("%s: a permit: %t\n%s", scheme, has, text)
		}
		if strings.Contains(viewer.get(path).text(), permit) {
			t.Errorf("%s: a viewer is shown the permit", scheme)
		}
	}
}

// What nothing can execute is said beside the choice, which is there where the chain has one.
func TestNewTransfer_Signing(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	form := ann.get(newTransferPath+"?sourceChain="+sepolia).is(http.StatusOK, "The account sends a transaction", "(ERC-3009)", "by Permit2")
	if chosen := form.find(func(n *html.Node) bool { return attribute(n, "id") == "signing" }); chosen == nil || chosen.Data != "select" {
		t.Error("Sepolia has no choice")
	}
	if ann.get(newTransferPath+"?sourceChain="+baseSepolia).find(func(n *html.Node) bool { return attribute(n, "id") == "signing" }) != nil {
		t.Error("Base Sepolia has a choice")
	}
	for _, c := range []struct {
		change []string
		status int
		wants  string
	}{
		{[]string{"signing", "permit2"}, http.StatusUnprocessableEntity, "A transfer has no settlement that takes a Permit2 signature; use erc3009 where the token has it, or leave signing out."},
		{
			[]string{"signing", "erc3009", "sourceToken", sepoliaWETH},
			http.StatusUnprocessableEntity,
			"Token WETH is not known to take ERC-3009 authorizations for a transfer; GET /v2/tokens says which do.",
		},
		{[]string{"signing", "eip7702"}, http.StatusBadRequest, "Signing: must be permit2 or erc3009."},
	} {
		ann.post(newTransferPath+"/confirm", payment(keyID, c.change...)...).is(c.status).tied("signing", c.wants)
	}
	ann.post(newTransferPath+"/confirm", payment(keyID, "signing", "erc3009", "deadline", "86400")...).is(http.StatusUnprocessableEntity, "The deadline of a transfer")
}
