package identity_test

import (
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/identity"
	"intents.internal/core/identity/siwe"
	"intents.internal/core/pgtest"
	"intents.internal/core/rpc"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

// wallet is a key and the messages it signs for http://intents.example.
type wallet struct {
	key     *ecdsa.PrivateKey
	address string
}

func newWallet(t *testing.T) wallet {
	t.Helper()
	key := must(crypto.GenerateKey())(t)
	return wallet{key: key, address: crypto.PubkeyToAddress(key.PublicKey).Hex()}
}

// message is one that is good now. Changes are texts and what takes their place in turn; <issued> and <end> stand for the
// time and for nothing.
func (w wallet) message(nonce string, changes ...string) string {
	return strings.NewReplacer(append(changes, "<issued>", ago(0), "<end>", "", "<address>", w.address, "<nonce>", nonce)...).Replace(
		`intents.example wants you to sign in with your Ethereum account:
<address>

Sign in to the Transfer Intent Service.

URI: http://intents.example/console
Version: 1
Chain ID: 11155111
Nonce: <nonce>
Issued At: <issued><end>`)
}

func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339Nano) }

func (w wallet) sign(t *testing.T, message string) string {
	t.Helper()
	signature := must(crypto.Sign(crypto.Keccak256(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(message), message)), w.key))(t)
	signature[64] += 27
	return "0x" + hex.EncodeToString(signature)
}

// send signs a message and signs in with it.
func (w wallet) send(t *testing.T, s *identity.Service, message string) error {
	t.Helper()
	return call(s.Persons.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message)))
}

func nonce(t *testing.T, s *identity.Service, v identity.Client) string {
	t.Helper()
	return must(s.Persons.WalletNonce(t.Context(), v))(t)
}

// What is refused before the nonce is looked at leaves it good; what is refused after has used it up.
func TestSignInWithEthereum_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	w, stranger := newWallet(t), newWallet(t)
	for name, c := range map[string]struct {
		changes []string
		want    error
	}{
		"wrong domain":                  {[]string{"intents.example wants", "evil.example wants"}, identity.ErrWalletSite},
		"another port":                  {[]string{"intents.example wants", "intents.example:8080 wants"}, identity.ErrWalletSite},
		"the scheme's own port":         {[]string{"intents.example wants", "intents.example:80 wants"}, identity.ErrWalletSite},
		"somebody at the domain":        {[]string{"intents.example wants", "ann@intents.example wants"}, identity.ErrWalletSite},
		"another scheme":                {[]string{"intents.example wants", "https://intents.example wants"}, identity.ErrWalletSite},
		"URI of another site":           {[]string{"http://intents.example/", "http://evil.example/"}, identity.ErrWalletSite},
		"URI of another scheme":         {[]string{"http://intents.example/", "https://intents.example/"}, identity.ErrWalletSite},
		"URI of another port":           {[]string{"http://intents.example/", "http://intents.example:8080/"}, identity.ErrWalletSite},
		"URI that looks like this site": {[]string{"http://intents.example/", "http://intents.example@evil.example/"}, identity.ErrWalletSite},
		"URI with a user":               {[]string{"http://intents.example/", "http://ann@intents.example/"}, identity.ErrWalletSite},
		"URI without a host":            {[]string{"http://intents.example/", "http:intents.example/"}, identity.ErrWalletSite},
		"expired":                       {[]string{"<end>", "\nExpiration Time: " + ago(time.Second)}, identity.ErrWalletExpired},
		"issued too long ago":           {[]string{"<issued>", ago(11 * time.Minute)}, identity.ErrWalletExpired},
		"too old for its expiration":    {[]string{"<issued>", ago(11 * time.Minute), "<end>", "\nExpiration Time: " + ago(-time.Hour)}, identity.ErrWalletExpired},
		"issued in the future":          {[]string{"<issued>", ago(-2 * time.Minute)}, identity.ErrWalletNotYetValid},
		"not before a time to come":     {[]string{"<end>", "\nNot Before: " + ago(-5*time.Minute)}, identity.ErrWalletNotYetValid},
		"a nonce of nobody":             {[]string{"<nonce>", "12345678"}, identity.ErrWalletNonce},
	} {
		n := nonce(t, s, identity.Client{})
		message := w.message(n, c.changes...)
		is(t, name+" in\n"+message, w.send(t, s, message), c.want)
		message = w.message(n, "<issued>", ago(-30*time.Second), "<end>", "\nExpiration Time: "+ago(-time.Hour)+"\nNot Before: "+ago(time.Hour))
		is(t, name+": after that, a good message", w.send(t, s, message), nil)
	}
	for name, make := range map[string]func(message string) (sent, signature string){
		"by another wallet": func(m string) (string, string) { return m, stranger.sign(t, m) },
		"for another wallet": func(m string) (string, string) {
			return strings.Replace(m, w.address, stranger.address, 1), w.sign(t, m)
		},
		"changed after it was signed": func(m string) (string, string) { return strings.Replace(m, "11155111", "1", 1), w.sign(t, m) },
		"the signature's twin":        func(m string) (string, string) { return m, twin(t, w.sign(t, m)) },
		"of a contract wallet":        func(m string) (string, string) { return m, "0x" + strings.Repeat("ab", 200) },
		"no signature":                func(m string) (string, string) { return m, "" },
	} {
		n := nonce(t, s, identity.Client{})
		message, signature := make(w.message(n))
		wanted := identity.ErrWalletChain // a smart account may have made it, which no node can be asked
		if signature == "" {
			wanted = siwe.ErrSignature
		}
		is(t, name, call(s.Persons.SignInWithEthereum(t.Context(), identity.Client{}, message, signature)), wanted)
		is(t, name+": after that the nonce", w.send(t, s, w.message(n)), identity.ErrWalletNonce)
	}
	message := w.message(nonce(t, s, identity.Client{}), "<end>", "\nJust this once")
	err := w.send(t, s, message)
	if syntax, ok := errors.AsType[*siwe.SyntaxError](err); !ok || syntax.Line != 11 {
		t.Errorf("trailing garbage: %v", err)
	}
	message = w.message(nonce(t, s, identity.Client{}))
	pgtest.Exec(t, s.Store, `UPDATE nonces SET expires_at = now()`)
	is(t, "a nonce that has expired", w.send(t, s, message), identity.ErrWalletNonce)
}

// twin is the other signature that the same key could have made of the same text.
func twin(t *testing.T, signature string) string {
	t.Helper()
	raw := must(hex.DecodeString(signature[2:]))(t)
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(raw[32:64]))
	s.FillBytes(raw[32:64])
	raw[64] = 55 - raw[64]
	return "0x" + hex.EncodeToString(raw)
}

func TestSignInWithEthereum_Limited(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *identity.Config) { c.Limits.SignInPerIP = 2 })
	client := identity.Client{IP: "203.0.113.7"}
	w := newWallet(t)
	message := w.message(nonce(t, s, client))
	ok(t, call(s.Persons.SignInWithEthereum(t.Context(), client, message, w.sign(t, message))))
	isLimited(t, "a nonce too many", call(s.Persons.WalletNonce(t.Context(), client)), true)
	isLimited(t, "a message too many", call(s.Persons.SignInWithEthereum(t.Context(), client, message, "")), true)
	is(t, "somebody else", call(s.Persons.WalletNonce(t.Context(), identity.Client{IP: "203.0.113.8"})), nil)

	s = newService(t, func(c *identity.Config) { c.Limits.SignUpPerIP = 1 })
	for n := range 2 {
		w := newWallet(t)
		isLimited(t, fmt.Sprintf("new account %d", n+1), w.send(t, s, w.message(nonce(t, s, identity.Client{}))), n == 1)
	}
}

// Browsers leave the scheme's own port out, whatever the setting says.
func TestSignInWithEthereum_OverTLS(t *testing.T) {
	t.Parallel()
	for publicURL, domains := range map[string][]string{
		"https://intents.example":     {"intents.example", "https://intents.example"},
		"https://Intents.example:443": {"intents.example", "https://intents.example", "Intents.example:443"},
	} {
		s := newService(t, func(c *identity.Config) { c.PublicURL = publicURL })
		w := newWallet(t)
		for _, domain := range domains {
			message := w.message(nonce(t, s, identity.Client{}), "intents.example wants", domain+" wants", "http://", "https://")
			is(t, publicURL+" of\n"+message, w.send(t, s, message), nil)
		}
	}
}

// word is 32 bytes that begin with these digits.
func word(digits string) string { return `"0x` + digits + strings.Repeat("0", 64-len(digits)) + `"` }

// verdict is a node that answers every check of a signature alike; loadtest/anvil has real ones with real accounts. The answer is the
// result, or an HTTP status that is none.
type verdict struct{ answer atomic.Value }

// on has newService ask the node on two chains.
func (n *verdict) on(t *testing.T) func(*identity.Config) {
	t.Helper()
	providers := rpc.Providers{}
	for _, number := range []uint64{10, 11155111} {
		id := caip.EIP155Chain(number)
		chainID, _ := json.Marshal("0x" + map[uint64]string{10: "a", 11155111: "aa36a7"}[number])
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var request struct {
				ID     int    `json:"id"`
				Method string `json:"method"`
			}
			_ = json.NewDecoder(r.Body).Decode(&request)
			answer, _ := n.answer.Load().(string)
			if answer == "down" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			if request.Method == "eth_chainId" {
				answer = string(chainID)
			}
			w.Header().Set("Content-Type", "application/json")
			writeJSON(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": json.RawMessage(answer)})
		}))
		t.Cleanup(server.Close)
		providers[id] = []rpc.Endpoint{{URL: telemetry.Secret(server.URL + "/v3/a-secret-key"), RequestsPerSecond: 1000}}
	}
	client := must(rpc.NewClient(providers, rpc.Options{}))(t)
	t.Cleanup(client.Close)
	return func(c *identity.Config) { c.Chains = client }
}

func TestSignInWithEthereum_SmartAccount(t *testing.T) {
	t.Parallel()
	var node verdict
	s := newService(t, node.on(t))
	w := newWallet(t)
	signIn := func(answer string, changes ...string) (*identity.SignedIn, error) {
		node.answer.Store(answer)
		return s.Persons.SignInWithEthereum(t.Context(), identity.Client{}, w.message(nonce(t, s, identity.Client{}), changes...), "0xabcd")
	}
	smart := must(signIn(word("1626ba7e")))(t)
	if smart.Account.Name != w.address || smart.Account.Email != strings.ToLower(w.address)+"@11155111.eip155.invalid" {
		t.Errorf("the account %+v", smart.Account)
	}
	again, err := signIn(word("1626ba7e"))
	if err != nil || again.Account.ID != smart.Account.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	elsewhere, err := signIn(word("1626ba7e"), "11155111", "10")
	if err != nil || elsewhere.Account.ID == smart.Account.ID {
		t.Errorf("the same address on another chain: %+v, %v", elsewhere, err)
	}
	// The key of the address is asked first, and is an account of its own, whatever code the address has.
	message := w.message(nonce(t, s, identity.Client{}))
	key, err := s.Persons.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message))
	if err != nil || key.Account.ID == smart.Account.ID || key.Account.Email != strings.ToLower(w.address)+"@eip155.invalid" {
		t.Errorf("the key of the address: %+v, %v", key, err)
	}
	for _, answer := range []string{word("00"), word("ffffffff"), word("1626ba7f"), word("1626ba7e01"), word("")} {
		is(t, answer, call(signIn(answer)), siwe.ErrSignature)
	}
	is(t, "a chain without a node", call(signIn(word("1626ba7e"), "11155111", "1")), identity.ErrWalletChain)
}

// A node that does not answer, or with what the validator never returns, proves nothing: neither who signed nor that nobody did. The
// message stays good.
func TestSignInWithEthereum_NodeDown(t *testing.T) {
	t.Parallel()
	var node verdict
	s := newService(t, node.on(t))
	w := newWallet(t)
	for _, answer := range []string{"down", `"0x"`, `"0x1626ba7e"`, `null`, `"0x` + strings.Repeat("16", 1<<20) + `"`, `true`} {
		node.answer.Store(answer)
		message := w.message(nonce(t, s, identity.Client{}))
		_, err := s.Persons.SignInWithEthereum(t.Context(), identity.Client{}, message, "0xabcd")
		if _, unanswered := errors.AsType[*rpc.NoAnswerError](err); !unanswered || errors.Is(err, siwe.ErrSignature) {
			t.Errorf("%.20s: %v", answer, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%.20s: the node's URL is in %v", answer, err)
		}
		node.answer.Store(word("1626ba7e"))
		for what, want := range []error{nil, identity.ErrWalletNonce} {
			err := call(s.Persons.SignInWithEthereum(t.Context(), identity.Client{}, message, "0xabcd"))
			is(t, fmt.Sprintf("%.20s: the same message after that, time %d", answer, what+1), err, want)
		}
	}
}
