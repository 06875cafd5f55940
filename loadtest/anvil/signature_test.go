package anvil_test

import (
	"crypto/ecdsa"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/rpc"
	"intents.internal/core/signature"
	"intents.internal/loadtest/anvil"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

const (
	chainID  = 31337
	suffix64 = "6492649264926492649264926492649264926492649264926492649264926492"
)

// signer asks a running node about signatures of one hash.
type signer struct {
	node   *anvil.Node
	client *rpc.Client
	key    *ecdsa.PrivateKey
	owner  common.Address
	hash   common.Hash
}

func newSigner(t *testing.T) signer {
	t.Helper()
	node := anvil.Start(t, anvil.Config{ChainID: chainID})
	client, err := rpc.NewClient(rpc.Providers{caip.EIP155Chain(chainID): {{URL: telemetry.Secret(node.URL), RequestsPerSecond: 1000}}}, rpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return signer{node: node, client: client, key: key, owner: crypto.PubkeyToAddress(key.PublicKey), hash: crypto.Keccak256Hash([]byte("a message"))}
}

func sign(t *testing.T, key *ecdsa.PrivateKey, hash common.Hash) []byte {
	t.Helper()
	signature, err := crypto.Sign(hash[:], key)
	if err != nil {
		t.Fatal(err)
	}
	signature[64] += 27
	return signature
}

func (s signer) is(t *testing.T, name string, want bool, account common.Address, given []byte) {
	t.Helper()
	smart, err := signature.ParseSmartAccount(given)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	got, err := signature.BySmartAccount(t.Context(), s.client, caip.EIP155Chain(chainID), account, s.hash, smart)
	if err != nil || got != want {
		t.Errorf("%s: %t, %v, want %t", name, got, err, want)
	}
}

// wrapped is a signature in the form of ERC-6492.
func wrapped(t *testing.T, factory common.Address, data, signature []byte) []byte {
	t.Helper()
	address, _ := abi.NewType("address", "", nil)
	text, _ := abi.NewType("bytes", "", nil)
	packed, err := abi.Arguments{{Type: address}, {Type: text}, {Type: text}}.Pack(factory, data, signature)
	if err != nil {
		t.Fatal(err)
	}
	return append(packed, common.FromHex(suffix64)...)
}

func TestBySmartAccount_DeployedAccount(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	stranger, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, s.key, s.hash)
	account := s.node.Deploy(t, s.node.Accounts[0], anvil.Compiled(t, "SmartAccount"), s.owner).Address
	s.is(t, "the owner's", true, account, good)
	s.is(t, "a stranger's", false, account, sign(t, stranger, s.hash))
	s.is(t, "of another hash", false, account, sign(t, s.key, common.Hash{1}))
	s.is(t, "too short", false, account, good[:64])
	s.is(t, "of an address without code", false, s.owner, good)
	s.is(t, "of a contract without the function", false, s.node.Deploy(t, s.node.Accounts[0], anvil.Compiled(t, "SmartAccountFactory")).Address, good)
	s.is(t, "in the form of ERC-6492, deployed already", true, account, wrapped(t, common.Address{1}, nil, good))
	s.is(t, "a stranger's in that form", false, account, wrapped(t, common.Address{1}, nil, sign(t, stranger, s.hash)))
}

func TestBySmartAccount_UndeployedAccount(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	factory := s.node.Deploy(t, s.node.Accounts[0], anvil.Compiled(t, "SmartAccountFactory"))
	salt := [32]byte{7}
	account := anvil.Read[common.Address](t, s.node, factory, "addressOf", s.owner, salt)
	create, good := factory.Pack(t, "create", s.owner, salt), sign(t, s.key, s.hash)

	s.is(t, "the owner's", true, account, wrapped(t, factory.Address, create, good))
	s.is(t, "without the factory's call", false, account, good)
	s.is(t, "of another hash", false, account, wrapped(t, factory.Address, create, sign(t, s.key, common.Hash{1})))
	s.is(t, "a factory that makes another account", false, account, wrapped(t, factory.Address, factory.Pack(t, "create", s.owner, [32]byte{8}), good))
	s.is(t, "a factory that reverts", false, account, wrapped(t, factory.Address, []byte{1, 2, 3, 4}, good))
	s.is(t, "a factory without code", false, account, wrapped(t, common.Address{1, 2}, create, good))
	s.is(t, "somebody else's address", false, s.node.Accounts[1], wrapped(t, factory.Address, create, good))
	for answer := range hostileAnswers {
		hostile := s.node.Deploy(t, s.node.Accounts[0], anvil.Compiled(t, "HostileAccount"), uint8(answer)).Address
		s.is(t, "a hostile factory: "+hostileAnswers[answer], false, account, wrapped(t, hostile, create, good))
	}
	var code string
	if s.node.Call(t, &code, "eth_getCode", account, "latest"); code != "0x" {
		t.Errorf("the check has deployed the account: %s", code)
	}
	s.node.Execute(t, factory.Transaction(t, s.node.Accounts[0], "create", s.owner, salt))
	s.is(t, "the same signature once the account is deployed", true, account, wrapped(t, factory.Address, create, good))
}

// hostileAnswers are those of HostileAccount.sol, in its order.
var hostileAnswers = []string{"reverts", "nothing", "4 bytes", "64 bytes", "other bytes after the magic value", "1 MiB", "all gas", "an invalid opcode"}

// Whatever a contract does, the answer is that it did not sign, and the node is not blamed.
func TestBySmartAccount_HostileAccount(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	for answer, name := range hostileAnswers {
		account := s.node.Deploy(t, s.node.Accounts[0], anvil.Compiled(t, "HostileAccount"), uint8(answer)).Address
		s.is(t, name, false, account, sign(t, s.key, s.hash))
	}
	chain, _ := s.client.Chain(caip.EIP155Chain(chainID))
	if p := chain.Providers(); len(p) != 1 || p[0].Problem() != "" {
		t.Errorf("the provider: %v", p)
	}
}

// A key that has delegated to a contract (EIP-7702) still signs; what its contract takes is another thing.
func TestBySmartAccount_DelegatedKey(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	account := s.node.Deploy(t, s.node.Accounts[0], anvil.Compiled(t, "SmartAccount"), s.owner).Address
	delegated := s.node.Accounts[1]
	s.node.Call(t, nil, "anvil_setCode", delegated, "0xef0100"+account.Hex()[2:])
	s.is(t, "by the contract's owner", true, delegated, sign(t, s.key, s.hash))
	other, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s.is(t, "by another key", false, delegated, sign(t, other, s.hash))
}

func TestBySmartAccount_NoNode(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	_, err := signature.BySmartAccount(t.Context(), s.client, caip.EIP155Chain(1), s.owner, s.hash, signature.SmartAccount{Signature: big.NewInt(1).Bytes()})
	if !errors.Is(err, rpc.ErrNoProvider) {
		t.Errorf("another chain: %v", err)
	}
}
