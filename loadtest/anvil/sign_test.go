package anvil_test

import (
	"bytes"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/loadtest/anvil"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// sepolia is the chain of pgtest's registry that has settlements, here with a node of anvil.
const sepolia = 11155111

// signService is a service that asks a running node about signatures, or none.
type signService struct {
	*intents.Service
	by transfer.Caller
}

func newSignService(t *testing.T, node *anvil.Node) signService {
	t.Helper()
	store := pgtest.New(t)
	pgtest.LoadRegistry(t, store)
	live, err := registry.NewLiveRegistry(t.Context(), store.Registry)
	if err != nil {
		t.Fatal(err)
	}
	config := intents.Config{Store: store.Intents, Registry: live}
	if node != nil {
		config.Chains, err = rpc.NewClient(rpc.Providers{caip.EIP155Chain(sepolia): {{URL: telemetry.Secret(node.URL), RequestsPerSecond: 1000}}}, rpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(config.Chains.Close)
	}
	return signService{intents.New(config), transfer.Caller{AccountID: uuid.New(), KeyID: uuid.New(), Environment: network.Test}}
}

// made is an intent of a user and the digest that is signed.
func (s signService) made(t *testing.T, user common.Address, scheme string) (*transfer.Intent, common.Hash) {
	t.Helper()
	body := strings.Replace(strings.ReplaceAll(pgtest.BridgeBody, pgtest.Alice, user.Hex()), `{`, `{"signing":"`+scheme+`",`, 1)
	record, _, err := s.Create(t.Context(), s.by, pgtest.ParseRequest(t, body), "")
	if err != nil {
		t.Fatal(err)
	}
	return record.Intent, record.Signature.Digest
}

// takes signs a new intent of a user by both schemes, and compares the outcome and the signature that the relay has.
func (s signService) takes(t *testing.T, name string, user common.Address, sign func(common.Hash) []byte, want error, relayed func(common.Hash) []byte) {
	t.Helper()
	for _, scheme := range []string{"permit2", "erc3009"} {
		intent, digest := s.made(t, user, scheme)
		_, err := s.Sign(t.Context(), access.OfKey(s.by.AccountID), intent, sign(digest))
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s, %s: %v, want %v", name, scheme, err, want)
			continue
		}
		tx, err := s.Relay(t.Context(), intent)
		switch {
		case want != nil && !errors.Is(err, intents.ErrNotSigned):
			t.Errorf("%s, %s: refused, and the relay is %v, %v", name, scheme, tx, err)
		case want == nil && (err != nil || !bytes.Contains(tx.Data, relayed(digest))):
			t.Errorf("%s, %s: the relay is %v, %v", name, scheme, tx, err)
		}
	}
}

// The verifier's table: which signatures of which accounts are taken, and in which form contracts get them.
func TestService_Sign(t *testing.T) {
	t.Parallel()
	node := anvil.Start(t, anvil.Config{ChainID: sepolia})
	s := newSignService(t, node)
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	owner := crypto.PubkeyToAddress(key.PublicKey)
	by := func(key *ecdsa.PrivateKey) func(common.Hash) []byte {
		return func(hash common.Hash) []byte { return sign(t, key, hash) }
	}
	good := by(key)
	changed := func(change func([]byte) []byte) func(common.Hash) []byte {
		return func(hash common.Hash) []byte { return change(good(hash)) }
	}
	compact := func(b []byte) []byte { b[32] |= (b[64] - 27) << 7; return b[:64] }
	highS := func(b []byte) []byte {
		new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(b[32:64])).FillBytes(b[32:64])
		b[64] ^= 27 ^ 28
		return b
	}
	zeroV := func(b []byte) []byte { b[64] -= 27; return b }
	s.takes(t, "a key", owner, good, nil, good)
	s.takes(t, "a key, 64 bytes", owner, changed(compact), nil, good)
	s.takes(t, "a key, v of 0 or 1", owner, changed(zeroV), nil, good)
	s.takes(t, "a key, high s", owner, changed(highS), nil, good)
	s.takes(t, "another key", owner, by(stranger), intents.ErrSignature, nil)

	account := node.Deploy(t, node.Accounts[0], anvil.Compiled(t, "SmartAccount"), owner).Address
	s.takes(t, "ERC-1271", account, good, nil, good)
	s.takes(t, "ERC-1271, another key", account, by(stranger), intents.ErrSignature, nil)
	s.takes(t, "ERC-1271, 64 bytes are not normalized", account, changed(compact), intents.ErrSignature, nil)

	factory, salt := node.Deploy(t, node.Accounts[0], anvil.Compiled(t, "SmartAccountFactory")), [32]byte{7}
	undeployed := anvil.Read[common.Address](t, node, factory, "addressOf", owner, salt)
	create := factory.Pack(t, "create", owner, salt)
	wrap := func(inner func(common.Hash) []byte) func(common.Hash) []byte {
		return func(hash common.Hash) []byte { return wrapped(t, factory.Address, create, inner(hash)) }
	}
	s.takes(t, "ERC-6492", undeployed, wrap(good), intents.ErrAccountNotDeployed, nil)
	s.takes(t, "ERC-6492, another key", undeployed, wrap(by(stranger)), intents.ErrSignature, nil)
	s.takes(t, "no code, not wrapped", undeployed, good, intents.ErrSignature, nil)
	node.Execute(t, factory.Transaction(t, node.Accounts[0], "create", owner, salt))
	s.takes(t, "ERC-6492, deployed since", undeployed, wrap(good), intents.ErrSignature, nil)
	s.takes(t, "deployed since, the inner signature", undeployed, good, nil, good)

	delegate := func(to common.Address) { node.Call(t, nil, "anvil_setCode", owner, "0xef0100"+to.Hex()[2:]) }
	delegate(account) // whose owner is the same key
	s.takes(t, "EIP-7702 to code that accepts it", owner, good, nil, good)
	delegate(factory.Address)
	s.takes(t, "EIP-7702 to code without ERC-1271: its own key does not count", owner, good, intents.ErrSignature, nil)

	bare := newSignService(t, nil)
	bare.takes(t, "no node, a key", owner, changed(highS), nil, good)
	bare.takes(t, "no node, anything else", account, good, rpc.ErrNoProvider, nil)
}
