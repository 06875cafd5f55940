package webtest

import (
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
)

// Wallet is the wallet of Alice, a well-known development key.
func Wallet(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.HexToECDSA("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// WalletNonce asks for a nonce.
func (s *Service) WalletNonce(t *testing.T) string {
	t.Helper()
	got := s.Call(t, "POST", "/auth/siwe/nonce", `{"walletAddress":"`+Alice+`"}`)
	nonce, ok := got.Body.(map[string]any)["nonce"].(string)
	if !ok {
		t.Fatalf("no nonce: %+v", got)
	}
	return nonce
}

// WalletMessage is a message that is good now.
func WalletMessage(nonce string) string {
	return fmt.Sprintf("intents.example wants you to sign in with your Ethereum account:\n%s\n\n\nURI: http://intents.example\nVersion: 1\nChain ID: 10\nNonce: %s\nIssued At: %s",
		Alice, nonce, time.Now().UTC().Format(time.RFC3339))
}

// SignedBody is the request to verify a message that the key has signed; more are further members of the body.
func SignedBody(t *testing.T, key *ecdsa.PrivateKey, message, more string) string {
	t.Helper()
	signature, err := crypto.Sign(crypto.Keccak256(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(message), message)), key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"message":%s,"signature":"0x%s"%s}`, text, hex.EncodeToString(signature), more)
}
