package identity_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"intents.internal/core/chains/onchain"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/identity"
	"intents.internal/core/identity/siwe"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

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
	client, err := rpc.NewClient(providers, rpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
		return s.SignInWithEthereum(t.Context(), identity.Client{}, w.message(nonce(t, s, identity.Client{}), changes...), "0xabcd")
	}
	smart, err := signIn(word("1626ba7e"))
	if err != nil {
		t.Fatal(err)
	}
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
	key, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message))
	if err != nil || key.Account.ID == smart.Account.ID || key.Account.Email != strings.ToLower(w.address)+"@eip155.invalid" {
		t.Errorf("the key of the address: %+v, %v", key, err)
	}
	for _, answer := range []string{word("00"), word("ffffffff"), word("1626ba7f"), word("1626ba7e01"), word("")} {
		if _, err := signIn(answer); !errors.Is(err, siwe.ErrSignature) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	if _, err := signIn(word("1626ba7e"), "11155111", "1"); !errors.Is(err, identity.ErrWalletChain) {
		t.Errorf("a chain without a node: %v", err)
	}
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
		_, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, "0xabcd")
		if _, unanswered := errors.AsType[*onchain.NoAnswerError](err); !unanswered || errors.Is(err, siwe.ErrSignature) {
			t.Errorf("%.20s: %v", answer, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%.20s: the node's URL is in %v", answer, err)
		}
		node.answer.Store(word("1626ba7e"))
		if _, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, "0xabcd"); err != nil {
			t.Errorf("%.20s: the same message after that: %v", answer, err)
		}
		if _, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, "0xabcd"); !errors.Is(err, identity.ErrWalletNonce) {
			t.Errorf("%.20s: the message a third time: %v", answer, err)
		}
	}
}
