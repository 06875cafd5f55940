package identity_test

import (
	"crypto/ecdsa"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/siwe"
	"intents.internal/core/store/postgres/pgtest"
)

// wallet is a key and the messages it signs for http://intents.example.
type wallet struct {
	key     *ecdsa.PrivateKey
	address string
}

func newWallet(t *testing.T) wallet {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
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
	signature, err := crypto.Sign(crypto.Keccak256(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(message), message)), w.key)
	if err != nil {
		t.Fatal(err)
	}
	signature[64] += 27
	return "0x" + hex.EncodeToString(signature)
}

func nonce(t *testing.T, s *identity.Service, v identity.Client) string {
	t.Helper()
	nonce, err := s.WalletNonce(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return nonce
}

func TestSignInWithEthereum(t *testing.T) {
	t.Parallel()
	s := newService(t)
	w := newWallet(t)
	client := identity.Client{IP: "203.0.113.7", UserAgent: "Wallet/1.0"}
	var ids []string
	for range 2 {
		message := w.message(nonce(t, s, client))
		got, err := s.SignInWithEthereum(t.Context(), client, message, w.sign(t, message))
		if err != nil {
			t.Fatal(err)
		}
		if _, owner, err := s.Session(t.Context(), got.Token); err != nil || owner.ID != got.Account.ID {
			t.Errorf("the session: %v, %v", owner, err)
		}
		if got.Account.Name != w.address || got.Account.Email != strings.ToLower(w.address)+"@eip155.invalid" || got.Account.PasswordHash != "" {
			t.Errorf("the account: %+v", got.Account)
		}
		ids = append(ids, got.Account.ID.String())
	}
	if ids[0] != ids[1] {
		t.Errorf("the wallet has two accounts: %v", ids)
	}
	want := "signed_up  203.0.113.7; signed_in with a wallet 203.0.113.7; signed_in with a wallet 203.0.113.7"
	got := pgtest.LookUp[string](t, s.Store, `SELECT string_agg(concat_ws(' ', action, detail, ip_address), '; ' ORDER BY id) FROM audit_log`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
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
		if _, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v, of\n%s", name, err, c.want, message)
		}
		message = w.message(n, "<issued>", ago(-30*time.Second), "<end>", "\nExpiration Time: "+ago(-time.Hour)+"\nNot Before: "+ago(time.Hour))
		if _, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message)); err != nil {
			t.Errorf("%s: after that, a good message: %v", name, err)
		}
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
		if _, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, signature); !errors.Is(err, wanted) {
			t.Errorf("%s: %v, want %v", name, err, wanted)
		}
		message = w.message(n)
		if _, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message)); !errors.Is(err, identity.ErrWalletNonce) {
			t.Errorf("%s: after that the nonce gives %v", name, err)
		}
	}
	message := w.message(nonce(t, s, identity.Client{}), "<end>", "\nJust this once")
	_, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message))
	if syntax, ok := errors.AsType[*siwe.SyntaxError](err); !ok || syntax.Line != 11 {
		t.Errorf("trailing garbage: %v", err)
	}
	pgtest.Exec(t, s.Store, `UPDATE nonces SET expires_at = now()`)
	message = w.message(nonce(t, s, identity.Client{}))
	pgtest.Exec(t, s.Store, `UPDATE nonces SET expires_at = now()`)
	if _, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message)); !errors.Is(err, identity.ErrWalletNonce) {
		t.Errorf("a nonce that has expired: %v", err)
	}
}

// twin is the other signature that the same key could have made of the same text.
func twin(t *testing.T, signature string) string {
	t.Helper()
	raw, err := hex.DecodeString(signature[2:])
	if err != nil {
		t.Fatal(err)
	}
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(raw[32:64]))
	s.FillBytes(raw[32:64])
	raw[64] = 55 - raw[64]
	return "0x" + hex.EncodeToString(raw)
}

// At the same moment, one message signs in once, and one wallet gets one account.
func TestSignInWithEthereum_Concurrent(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const sent = 12
	run := func(message func(i int) (text, signature string)) (errs []error) {
		var done sync.WaitGroup
		errs = make([]error, sent)
		for i := range sent {
			text, signature := message(i)
			done.Go(func() { _, errs[i] = s.SignInWithEthereum(t.Context(), identity.Client{}, text, signature) })
		}
		done.Wait()
		return errs
	}

	w := newWallet(t)
	text := w.message(nonce(t, s, identity.Client{}))
	signature := w.sign(t, text)
	good := 0
	for _, err := range run(func(int) (string, string) { return text, signature }) {
		switch {
		case err == nil:
			good++
		case !errors.Is(err, identity.ErrWalletNonce):
			t.Error(err)
		}
	}
	if sessions := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM sessions`); good != 1 || sessions != 1 {
		t.Errorf("one message signed in %d times and made %d sessions", good, sessions)
	}

	w = newWallet(t)
	for _, err := range run(func(int) (string, string) {
		text := w.message(nonce(t, s, identity.Client{}))
		return text, w.sign(t, text)
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if accounts := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts WHERE name = $1`, w.address); accounts != 1 {
		t.Errorf("the wallet has %d accounts", accounts)
	}
}
