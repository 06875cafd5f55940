package transfer_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/transfer"
	"intents.internal/pkg/wire"
)

// walletDigest is what a wallet signs for a parameter of eth_signTypedData_v4, by go-ethereum.
func walletDigest(t *testing.T, typed *transfer.TypedData) common.Hash {
	t.Helper()
	var data apitypes.TypedData
	if err := json.Unmarshal(transfer.AppendTypedData(nil, typed), &data); err != nil {
		t.Fatal(err)
	}
	digest, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		t.Fatal(err)
	}
	return common.Hash(digest)
}

// members are the values of a message, in whatever spelling of addresses.
func members(t *testing.T, message []byte) (values any) {
	t.Helper()
	if err := json.Unmarshal(bytes.ToLower(message), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func messageOf(t *testing.T, typed *transfer.TypedData) any {
	t.Helper()
	var whole struct{ Message json.RawMessage }
	if err := json.Unmarshal(transfer.AppendTypedData(nil, typed), &whole); err != nil {
		t.Fatal(err)
	}
	return members(t, whole.Message)
}

// Where a recorded signer has signed the order that was sent, the digest and the call of openFor are the recorded ones; elsewhere the digest is
// another, so the settler refuses.
func TestOrder_TypedData_Recorded(t *testing.T) {
	t.Parallel()
	r := recordedGasless(t)
	same, other := map[wire.SigningScheme]int{}, 0
	for _, c := range r.Cases {
		if !c.byUser() || !c.Order.expressible() {
			continue
		}
		intent := c.Order.intent(r.Chain.Settlers[c.Settler])
		order, err := intent.Order()
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if order.ID() != c.OrderID {
			t.Errorf("%s: order id %x, want %s", c.Name, order.ID(), c.OrderID)
		}
		scheme, domain := wire.Permit2, transfer.Permit2Domain(r.Chain.ChainID)
		if c.Signature[0] == 1 {
			scheme, domain = wire.ERC3009, transfer.SigningDomain{
				Name: "USD Coin", Version: "2", ChainID: r.Chain.ChainID, Contract: intent.Source.Token.Address,
			}
		}
		typed, err := order.TypedData(scheme, domain)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if got := walletDigest(t, typed); got != typed.Digest {
			t.Errorf("%s: a wallet signs %s, and the digest is %x", c.Name, got, typed.Digest)
		}
		d := c.TypedData.Domain
		signed := domain == transfer.SigningDomain{Name: d.Name, Version: d.Version, ChainID: d.ChainID, Contract: d.VerifyingContract.Hex()} &&
			c.TypedData.PrimaryType == primaryType(t, typed) && cmp.Equal(messageOf(t, typed), members(t, c.TypedData.Message))
		if signed != (typed.Digest == c.Digest) {
			t.Errorf("%s: digest %x, recorded %s, and the same is signed: %t", c.Name, typed.Digest, c.Digest, signed)
		}
		if !signed {
			other++
			continue
		}
		same[scheme]++
		if call, err := order.OpenFor(scheme, c.Signature[1:]); err != nil || !bytes.Equal(call.Data, c.Calldata) {
			t.Errorf("%s: openFor %v\n%x\nwant\n%x", c.Name, err, call.Data, []byte(c.Calldata))
		}
	}
	if same[wire.Permit2] < 15 || same[wire.ERC3009] < 10 || other < 15 {
		t.Errorf("%v cases are of the same message and %d of another", same, other)
	}
}

func primaryType(t *testing.T, typed *transfer.TypedData) (name string) {
	t.Helper()
	var whole struct{ PrimaryType string }
	if err := json.Unmarshal(transfer.AppendTypedData(nil, typed), &whole); err != nil {
		t.Fatal(err)
	}
	return whole.PrimaryType
}

// The recorded calls of transferWithAuthorization are those of the same authorizations.
func TestAuthorization_Recorded(t *testing.T) {
	t.Parallel()
	r := recordedGasless(t)
	for _, c := range r.Transfers {
		var m struct {
			From, To    common.Address
			Value       string
			ValidAfter  string
			ValidBefore math.HexOrDecimal64
			Nonce       common.Hash
		}
		if err := json.Unmarshal(c.TypedData.Message, &m); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		a := transfer.Authorization{
			Domain: transfer.SigningDomain{Name: "USD Coin", Version: "2", ChainID: r.Chain.ChainID, Contract: r.Chain.FiatTokenV2_2.Hex()},
			From:   m.From.Hex(), To: m.To.Hex(), Value: bigInt(m.Value), Before: uint32(m.ValidBefore), Nonce: m.Nonce,
			Payee: strings.HasPrefix(c.TypedData.PrimaryType, "Receive"),
		}
		typed, err := a.TypedData()
		if err != nil {
			t.Fatal(err)
		}
		if digest := common.Hash(typed.Digest); m.ValidAfter == "0" && digest != c.Digest || walletDigest(t, typed) != digest {
			t.Errorf("%s: digest %s, want %s", c.Name, digest, c.Digest)
		}
		if cancel, err := a.Cancel(); err != nil || walletDigest(t, cancel) != cancel.Digest {
			t.Errorf("%s: what cancels it: %v", c.Name, err)
		}
		a.Payee = false
		call, err := a.Call(c.Signature, false)
		if recorded := common.FromHex(c.Steps[0].Data); m.ValidAfter == "0" && (err != nil || !bytes.Equal(call.Data, recorded)) {
			t.Errorf("%s: %v\n%x\nwant\n%x", c.Name, err, call.Data, recorded)
		}
	}
}

func BenchmarkOrder_TypedData(b *testing.B) {
	r, err := readGasless()
	if err != nil {
		b.Fatal(err)
	}
	order, err := r.Cases[0].Order.intent(r.Chain.Settlers["head"]).Order()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := order.TypedData(wire.Permit2, transfer.SigningDomain{}); err != nil {
			b.Fatal(err)
		}
	}
}
