package api_test

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/core/web/webtest"
)

// signer is a user with a key.
type signer struct {
	key     *ecdsa.PrivateKey
	address string
}

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, crypto.PubkeyToAddress(key.PublicKey).Hex()}
}

// signedIntent is what a client reads of a record.
type signedIntent struct {
	ID      string
	OrderID common.Hash
	Status  string
	Tx      any
	Signing struct {
		Scheme                         string
		TypedData                      *apitypes.TypedData
		Digest                         common.Hash
		ExpiresAt                      string
		Allowance, Permit, Revoke, Nil map[string]any
		SignedAt                       *string
	}
}

// request is the body of an intent that the user signs.
func (w signer) request(body, signing string) string {
	return strings.Replace(strings.ReplaceAll(body, webtest.Alice, w.address), `{`, `{"signing":"`+signing+`",`, 1)
}

// sign signs typed data as a wallet does.
func (w signer) sign(t *testing.T, data *apitypes.TypedData) hexutil.Bytes {
	t.Helper()
	digest, _, err := apitypes.TypedDataAndHash(*data)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := crypto.Sign(digest, w.key)
	if err != nil {
		t.Fatal(err)
	}
	signed[64] += 27
	return signed
}

func signatureOf(signature hexutil.Bytes) string { return `{"signature":"` + signature.String() + `"}` }

func (s *service) signing(t *testing.T, path string, header ...string) (i signedIntent) {
	t.Helper()
	if err := json.Unmarshal([]byte(webtest.ReadAll(t, s.Send(t, "GET", path, "", header...))), &i); err != nil {
		t.Fatal(err)
	}
	return i
}

// walletChain is Sepolia as wallets without code see it.
func walletChain() *rpctest.Chain {
	chain := rpctest.NewChain(11155111)
	chain.MineEmpty(1)
	chain.SetFunction(usdc, rpctest.NewSelector("nonces(address)"), func(rpctest.Call) ([]byte, error) { return rpctest.Word(7), nil })
	return chain
}

// The user of an intent signs, and any account can send what the relay then has, by both schemes and for each type.
func TestSignTransfer(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(walletChain())) })
	key, err := crypto.ToECDSA(bytes.Repeat([]byte{7}, 32)) // the same in each run, for the examples
	if err != nil {
		t.Fatal(err)
	}
	user, account := signer{key, crypto.PubkeyToAddress(key.PublicKey).Hex()}, webtest.Keyed(uuid.New(), "test")
	for _, c := range []struct{ name, body, scheme, primaryType, selector, to, typeByte string }{
		{"a bridge by Permit2", webtest.BridgeBody, "permit2", "PermitBatchWitnessTransferFrom", "0x49927074", sepoliaSettler.Hex(), "00"},
		{"a bridge by ERC-3009", webtest.BridgeBody, "erc3009", "ReceiveWithAuthorization", "0x49927074", sepoliaSettler.Hex(), "01"},
		{"a swap by Permit2", webtest.SwapBody, "permit2", "PermitBatchWitnessTransferFrom", "0x49927074", sepoliaSettler.Hex(), "00"},
		{"a transfer by ERC-3009", webtest.TransferBody, "erc3009", "TransferWithAuthorization", "0xcf092995", usdc.Hex(), ""},
	} {
		call := s.Example
		if c.name == "a bridge by ERC-3009" || c.name == "a swap by Permit2" { // the document has enough of these
			call = func(t *testing.T, _, method, path, body string, header ...string) webtest.Answer {
				t.Helper()
				return s.Call(t, method, path, body, header...)
			}
		}
		made := call(t, c.name, "POST", "/v2/transfers", user.request(c.body, c.scheme), account...)
		if made.Status != 201 {
			t.Fatalf("%s: %+v", c.name, made)
		}
		location := made.Header["Location"]
		intent := s.signing(t, location, account...)
		typed := intent.Signing.TypedData
		if intent.Tx != nil || intent.Signing.Scheme != c.scheme || typed == nil || typed.PrimaryType != c.primaryType || intent.Signing.SignedAt != nil {
			t.Fatalf("%s: %+v", c.name, intent)
		}
		digest, _, err := apitypes.TypedDataAndHash(*typed)
		if err != nil || common.Hash(digest) != intent.Signing.Digest {
			t.Errorf("%s: digest %s, a wallet signs %x: %v", c.name, intent.Signing.Digest, digest, err)
		}
		if permit2 := c.scheme == "permit2"; permit2 != (intent.Signing.Allowance["spender"] == transfer.Permit2Address) || permit2 != (intent.Signing.Permit != nil) {
			t.Errorf("%s: allowance %v, permit %v", c.name, intent.Signing.Allowance, intent.Signing.Permit)
		}
		webtest.Same(t, c.name+", not signed", webtest.Refused(t, 409, "NOT_SIGNED",
			"The intent has no signature to send. Its user signs signing.typedData; send the signature to POST /v2/transfers/{id}/signature."),
			s.Call(t, "GET", location+"/relay", "", account...))

		signature := user.sign(t, typed)
		if signed := call(t, c.name, "POST", location+"/signature", signatureOf(signature), account...); signed.Status != 200 {
			t.Fatalf("%s: %+v", c.name, signed)
		}
		if signed := s.signing(t, location, account...); signed.Signing.SignedAt == nil || signed.Status != "created" || signed.Tx != nil {
			t.Errorf("%s: signed %+v", c.name, signed)
		}
		relay := call(t, c.name, "GET", location+"/relay", "", account...)
		tx, _ := relay.Body.(map[string]any)["tx"].(map[string]any)
		data, _ := tx["data"].(string)
		if !strings.HasPrefix(data, c.selector) || !strings.Contains(data, c.typeByte+signature.String()[2:]) || tx["to"] != c.to || tx["value"] != "0" || tx["from"] != nil {
			t.Errorf("%s: relay %+v", c.name, relay)
		}
		for _, path := range []string{location, "/v2/transfers", "/v2/events", location + "/preflight"} {
			if body := webtest.ReadAll(t, s.Send(t, "GET", path, "", account...)); strings.Contains(body, signature.String()[2:]) {
				t.Errorf("%s: %s tells the signature", c.name, path)
			}
		}
		if strings.Contains(s.Log.String(), signature.String()[2:]) {
			t.Errorf("%s: the log tells the signature", c.name)
		}
	}
}

// A signature is refused for what it is, and for when it comes; every form of a good one is taken.
func TestSignTransfer_Refused(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(walletChain())) })
	owner, user := uuid.New(), newSigner(t)
	account := webtest.Keyed(owner, "test")
	made := func(body, scheme string) (string, signedIntent, hexutil.Bytes) {
		_, location, _ := s.CreateTransfer(t, user.request(body, scheme), account...)
		intent := s.signing(t, location, account...)
		return location, intent, user.sign(t, intent.Signing.TypedData)
	}
	location, intent, good := made(webtest.BridgeBody, "permit2")
	path := location + "/signature"
	post := func(path string, signature []byte) webtest.Answer {
		return s.Call(t, "POST", path, signatureOf(signature), account...)
	}
	const grammar = "must be a signature: 0x and 64 to 4,096 bytes in hexadecimal digits"
	webtest.Same(t, "no signature", webtest.Invalid(t, "/signature", "is required"), s.Call(t, "POST", path, `{}`, account...))
	webtest.Same(t, "no prefix", webtest.Invalid(t, "/signature", grammar), s.Call(t, "POST", path, `{"signature":"`+good.String()[2:]+`"}`, account...))
	webtest.Same(t, "63 bytes", webtest.Invalid(t, "/signature", grammar), post(path, good[:63]))
	webtest.Same(t, "4,097 bytes", webtest.Invalid(t, "/signature", grammar), post(path, make([]byte, 4097)))
	webtest.Same(t, "another member", webtest.Invalid(t, "/digest", "is not a known field"),
		s.Call(t, "POST", path, `{"signature":"`+good.String()+`","digest":"0x00"}`, account...))

	wrong := webtest.Refused(t, 422, "SIGNATURE_INVALID", "The source account has not made this signature of the intent's typed data. Sign signing.typedData as it is, "+
		"with eth_signTypedData_v4; an account with code must accept it by ERC-1271, and its own key does not count.")
	webtest.Same(t, "another key", wrong, post(path, newSigner(t).sign(t, intent.Signing.TypedData)))
	_, _, other := made(webtest.BridgeBody, "permit2")
	webtest.Same(t, "of another intent", wrong, post(path, other))
	webtest.Same(t, "4,096 bytes", wrong, post(path, make([]byte, 4096)))

	withV := func(v byte) hexutil.Bytes { return append(bytes.Clone(good[:64]), v) }
	compact := bytes.Clone(good[:64])
	compact[32] |= (good[64] - 27) << 7
	relayed := s.Call(t, "POST", path, signatureOf(good), account...)
	if relayed.Status != 200 {
		t.Fatalf("%+v", relayed)
	}
	want := s.Call(t, "GET", location+"/relay", "", account...)
	for name, form := range map[string]hexutil.Bytes{"v of 0 or 1": withV(good[64] - 27), "64 bytes": compact} {
		if got := post(path, form); got.Status != 200 {
			t.Errorf("%s: %+v", name, got)
		}
		webtest.Same(t, name+", relayed", want, s.Call(t, "GET", location+"/relay", "", account...))
	}

	conflict := func(status string) webtest.Answer {
		return webtest.Detailed(webtest.Refused(t, 409, "STATUS_CONFLICT", "The intent's status, its deadline or its deployment does not allow this; see details.status and read it again."), "status", status)
	}
	_, unsigned, _ := s.CreateTransfer(t, webtest.BridgeBody, account...)
	webtest.Same(t, "an intent that is not signed", conflict("created"), post(unsigned+"/signature", good))
	pgtest.Exec(t, s.Store, `UPDATE transfers SET deadline = now() + interval '3 s' WHERE id = $1`, intent.ID)
	webtest.Same(t, "at the deadline", conflict("created"), post(path, good))
	webtest.Same(t, "relay at the deadline", conflict("created"), s.Call(t, "GET", location+"/relay", "", account...))
	missing := webtest.Refused(t, 404, "NOT_FOUND", "The account has no such transfer.")
	webtest.Same(t, "another account", missing, s.Call(t, "POST", path, signatureOf(good), webtest.Keyed(uuid.New(), "test")...))
	webtest.Same(t, "another account's relay", missing, s.Call(t, "GET", location+"/relay", "", webtest.Keyed(uuid.New(), "test")...))

	bare := start(t)
	_, elsewhere, _ := bare.CreateTransfer(t, user.request(webtest.TransferBody, "erc3009"), account...)
	alone := bare.signing(t, elsewhere, account...)
	webtest.Same(t, "another key, no node", webtest.Refused(t, 422, "CHAIN_NOT_WATCHED",
		"The operator has configured no node for this chain, so nothing can be asked there; GET /v2/chains says which chains are watched."),
		bare.Call(t, "POST", elsewhere+"/signature", signatureOf(good), account...))
	if got := bare.Call(t, "POST", elsewhere+"/signature", signatureOf(user.sign(t, alone.Signing.TypedData)), account...); got.Status != 200 {
		t.Errorf("the user's key, no node: %+v", got)
	}
}

// What is cancelled has no signature any more, and says what makes copies of it worthless; an hour after its deadline none is kept either.
func TestSignTransfer_Ends(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(walletChain())) })
	owner, user := uuid.New(), newSigner(t)
	account := webtest.Keyed(owner, "test")
	kept := func(id string) bool {
		return pgtest.LookUp[bool](t, s.Store, `SELECT signature IS NOT NULL FROM transfers WHERE id = $1`, id)
	}
	for _, scheme := range []string{"permit2", "erc3009"} {
		_, location, _ := s.CreateTransfer(t, user.request(webtest.BridgeBody, scheme), account...)
		intent := s.signing(t, location, account...)
		s.Call(t, "POST", location+"/signature", signatureOf(user.sign(t, intent.Signing.TypedData)), account...)
		if !kept(intent.ID) {
			t.Fatal("there is no signature")
		}
		s.Call(t, "POST", location+"/cancel", "", account...)
		cancelled := s.signing(t, location, account...)
		if kept(intent.ID) || cancelled.Signing.TypedData != nil || cancelled.Signing.SignedAt == nil || cancelled.Signing.Digest != intent.Signing.Digest {
			t.Errorf("%s: cancelled %+v", scheme, cancelled)
		}
		data, _ := cancelled.Signing.Revoke["data"].(string)
		if scheme == "permit2" != strings.HasPrefix(data, "0x3ff9dcb1") || scheme == "erc3009" != (cancelled.Signing.Revoke["primaryType"] == "CancelAuthorization") {
			t.Errorf("%s: revoke %v", scheme, cancelled.Signing.Revoke)
		}
		webtest.Same(t, "relay", webtest.Detailed(webtest.Refused(t, 409, "STATUS_CONFLICT",
			"The intent's status, its deadline or its deployment does not allow this; see details.status and read it again."), "status", "cancelled"),
			s.Call(t, "GET", location+"/relay", "", account...))
	}
	_, unsigned, _ := s.CreateTransfer(t, user.request(webtest.BridgeBody, "permit2"), account...)
	s.Call(t, "POST", unsigned+"/cancel", "", account...)
	if intent := s.signing(t, unsigned, account...); intent.Signing.Revoke != nil {
		t.Errorf("never signed: %+v", intent)
	}

	_, location, _ := s.CreateTransfer(t, user.request(webtest.TransferBody, "erc3009"), account...)
	intent := s.signing(t, location, account...)
	s.Call(t, "POST", location+"/signature", signatureOf(user.sign(t, intent.Signing.TypedData)), account...)
	pgtest.Exec(t, s.Store, `UPDATE transfers SET deadline = now() - interval '59 min' WHERE id = $1`, intent.ID)
	if erased, err := s.Store.Intents.EraseSignatures(t.Context()); err != nil || erased != 0 || !kept(intent.ID) {
		t.Errorf("within the hour: %d, %v", erased, err)
	}
	pgtest.Exec(t, s.Store, `UPDATE transfers SET deadline = now() - interval '61 min' WHERE id = $1`, intent.ID)
	if erased, err := s.Store.Intents.EraseSignatures(t.Context()); err != nil || erased != 1 || kept(intent.ID) {
		t.Errorf("after an hour: %d, %v", erased, err)
	}
}

// Who asks to sign what nothing takes is told why.
func TestCreateTransfer_SigningNotSupported(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	with := func(body, scheme string) string { return strings.Replace(body, `{`, `{"signing":"`+scheme+`",`, 1) }
	for name, c := range map[string]struct{ body, reason, message string }{
		"native": {
			with(webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnBase, webtest.BaseUSDC, "4", ""), "permit2"), "native",
			"The native token of eip155:11155111 cannot be moved by a signature; use its wrapped token, or leave signing out.",
		},
		"a transfer by Permit2": {
			with(webtest.TransferBody, "permit2"), "settlement",
			"A transfer has no settlement that takes a Permit2 signature; use erc3009 where the token has it, or leave signing out.",
		},
		"a token without ERC-3009": {
			with(webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaWETH, "5", webtest.BobOnSepolia, "", "", ""), "erc3009"), "token",
			"Token WETH is not known to take ERC-3009 authorizations for a transfer; GET /v2/tokens says which do.",
		},
		"a settlement without": {
			with(webtest.Body("eip155:84532:"+webtest.Alice, webtest.BaseUSDC, "5", webtest.BobOnSepolia, webtest.SepoliaUSDC, "4", ""), "permit2"), "settlement",
			"No deployment that executes this bridge takes signatures of permit2; GET /v2/chains says which do.",
		},
	} {
		webtest.Same(t, name, webtest.Detailed(webtest.Refused(t, 422, "SIGNING_NOT_SUPPORTED", c.message), "reason", c.reason), s.Call(t, "POST", "/v2/transfers", c.body, account...))
	}
	webtest.Same(t, "an hour and a minute", webtest.Refused(t, 422, "INVALID_DEADLINE",
		"The deadline of a transfer from eip155:11155111 must be 60 seconds to 3600 seconds from now."),
		s.Call(t, "POST", "/v2/transfers", strings.Replace(with(webtest.TransferBody, "erc3009"), `{`, `{"deadline":"`+time.Now().Add(61*time.Minute).UTC().Format(time.RFC3339)+`",`, 1), account...))
}

// What is listed after it was made is neither signed nor relayed, and comes back with the address.
func TestSignTransfer_Screened(t *testing.T) {
	t.Parallel()
	s := startScreened(t)
	owner, user := pgtest.SignUp(t, s.Store, "ann@example.com").ID, newSigner(t)
	key := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, user.request(webtest.TransferBody, "erc3009"), key...)
	signature := signatureOf(user.sign(t, s.signing(t, location, key...).Signing.TypedData))
	s.List(t, user.address)
	refusal := webtest.NotAllowed(t, "/source/account")
	webtest.Same(t, "signature", refusal, s.Call(t, "POST", location+"/signature", signature, key...))
	webtest.Same(t, "relay", refusal, s.Call(t, "GET", location+"/relay", "", key...))
	webtest.Same(t, "preflight", refusal, s.Call(t, "GET", location+"/preflight", "", key...))
	if intent := s.signing(t, location, key...); intent.Signing.TypedData != nil {
		t.Errorf("listed: %+v", intent)
	}
	s.Delist(t, user.address)
	if got := s.Call(t, "POST", location+"/signature", signature, key...); got.Status != 200 {
		t.Errorf("delisted: %+v", got)
	}
	s.Unlogged(t, s.Log)
}

// The preflight of a signed intent says what the token, Permit2 and the settler say, and what only the signature can show.
func TestPreflightTransfer_Signed(t *testing.T) {
	t.Parallel()
	permit2, bitmap := common.HexToAddress(transfer.Permit2Address), rpctest.NewSelector("nonceBitmap(address,uint256)")
	state, receive := rpctest.NewSelector("authorizationState(address,bytes32)"), rpctest.Selector{0x88, 0xb7, 0xab, 0x63}
	move, openFor := rpctest.Selector{0xcf, 0x09, 0x29, 0x95}, rpctest.Selector{0x49, 0x92, 0x70, 0x74}
	chain := payable()
	chain.MineEmpty(1)
	chain.SetFunction(permit2, bitmap, returning(0))
	chain.SetFunction(usdc, state, returning(0))
	chain.SetFunction(usdc, receive, returning(0))
	chain.SetFunction(usdc, move, func(rpctest.Call) ([]byte, error) { return nil, nil })
	chain.SetFunction(sepoliaSettler, openFor, returning(0))
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(chain)) })
	account, user := webtest.Keyed(uuid.New(), "test"), newSigner(t)
	made := func(body, scheme string) string {
		_, location, _ := s.CreateTransfer(t, user.request(body, scheme), account...)
		return location
	}
	sign := func(location string) {
		signed := s.Call(t, "POST", location+"/signature", signatureOf(user.sign(t, s.signing(t, location, account...).Signing.TypedData)), account...)
		if signed.Status != 200 {
			t.Fatalf("%+v", signed)
		}
	}
	checks := func(location string) map[string]string {
		found := map[string]string{}
		body, _ := s.Call(t, "GET", location+"/preflight", "", account...).Body.(map[string]any)
		list, _ := body["checks"].([]any)
		for _, c := range list {
			check, _ := c.(map[string]any)
			if name, _ := check["name"].(string); name != "balance" && name != "deadline" && name != "settler" {
				found[name] = checkWords(check)
			}
		}
		found["ok"], _ = body["gas"].(string)
		if ok, _ := body["ok"].(bool); !ok {
			found["ok"] = "no"
		}
		return found
	}
	expect := func(name, location string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, checks(location)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	const unused, signed = "ok: The signature's nonce is unused.", "ok: The source account has signed."
	byPermit2, byToken, paid := made(webtest.BridgeBody, "permit2"), made(webtest.BridgeBody, "erc3009"), made(webtest.TransferBody, "erc3009")
	notSigned, later := "ok, needed: The user has not signed yet.", "ok, unknown: The transaction is simulated once it is signed."
	permitted, noAllowance := "ok: Permit2 may draw 5 units of the token, and the transaction needs 5.", "ok: An allowance is not needed."
	noAuthorization := "ok: An authorization is not needed."
	expect("permit2, not signed", byPermit2, map[string]string{
		"ok": "", "allowance": permitted, "signature": notSigned, "nonce": unused, "authorization": noAuthorization, "simulation": later,
	})
	expect("erc3009, not signed", byToken, map[string]string{
		"ok": "", "allowance": noAllowance, "signature": notSigned, "nonce": unused,
		"authorization": "ok, unknown: Whether the token takes the authorization is known once it is signed.", "simulation": later,
	})
	sign(byPermit2)
	sign(byToken)
	sign(paid)
	simulated, taken := "ok: The transaction succeeds at the newest block.", "ok: The token takes the authorization."
	green := func(allowance, authorization string) map[string]string {
		return map[string]string{"ok": "123456", "allowance": allowance, "signature": signed, "nonce": unused, "authorization": authorization, "simulation": simulated}
	}
	expect("permit2, signed", byPermit2, green(permitted, noAuthorization))
	expect("erc3009, signed", byToken, green(noAllowance, taken))
	expect("a transfer, signed", paid, green(noAllowance, taken))

	chain.SetFunction(usdc, rpctest.Allowance, returning(4))
	chain.SetFunction(permit2, bitmap, func(rpctest.Call) ([]byte, error) { return bytes.Repeat([]byte{0xff}, 32), nil })
	chain.SetFunction(sepoliaSettler, openFor, reverting(0x75, 0x66, 0x88, 0xfe))
	expect("permit2, given up", byPermit2, map[string]string{
		"ok": "no", "signature": signed, "authorization": noAuthorization,
		"allowance":  "Permit2 may draw 4 units of the token, and the transaction needs 5: the user approves Permit2 once, or signs signing.permit where it is there.",
		"nonce":      "The order's nonce at Permit2 was used or given up; make a new intent.",
		"simulation": "The transaction reverts, because the order's nonce at Permit2 was used or given up.",
	})
	chain.SetFunction(usdc, state, returning(1))
	chain.SetFunction(usdc, receive, reverting(reason("FiatTokenV2: authorization is used or canceled")...))
	chain.SetFunction(sepoliaSettler, openFor, reverting(0x06, 0xf6, 0x8b, 0x62))
	expect("erc3009, cancelled", byToken, map[string]string{
		"ok": "no", "signature": signed, "allowance": noAllowance,
		"nonce":         "The authorization was used or cancelled; make a new intent.",
		"authorization": `The token refuses the authorization: The transaction reverts with the text "FiatTokenV2: authorization is used or canceled".`,
		"simulation":    "The transaction reverts, because the token refuses the authorization.",
	})
}

// reason is the data of a revert with a text.
func reason(text string) []byte {
	data := append([]byte{0x08, 0xc3, 0x79, 0xa0}, rpctest.Word(32)...)
	data = append(data, rpctest.Word(uint64(len(text)))...)
	return append(data, common.RightPadBytes([]byte(text), (len(text)+31)/32*32)...)
}

func checkWords(check map[string]any) (words string) {
	for _, flag := range []string{"ok", "needed", "unknown"} {
		if set, _ := check[flag].(bool); set {
			words += ", " + flag
		}
	}
	detail, _ := check["detail"].(string)
	if words == "" {
		return detail
	}
	return words[2:] + ": " + detail
}
