package transfer

import (
	"math/big"

	"intents.internal/pkg/wire"
)

// settlerOpenFor opens an order with the tokens of a sponsor, who has signed for it. Anybody can send it.
var settlerOpenFor = selector("openFor(" + standardOrder + ",address,bytes)")

// signatureTypes are the first bytes of openFor's signature, which say how the sponsor has signed.
var signatureTypes = map[wire.SigningScheme]byte{wire.Permit2: 0x00, wire.ERC3009: 0x01}

// TypedSignature is the signature of a scheme as openFor takes it.
func TypedSignature(scheme wire.SigningScheme, signature []byte) []byte {
	return append([]byte{signatureTypes[scheme]}, signature...)
}

// SignedOrder is an order with its user's signature, as a solver takes it.
type SignedOrder struct {
	*Order
	Scheme wire.SigningScheme
	// TypedData is what was signed.
	TypedData *TypedData
	// Signature has the type byte of openFor.
	Signature []byte
}

// OpenFor is the call that opens the order with its user's signature of TypedData.
func (o *Order) OpenFor(scheme wire.SigningScheme, signature []byte) (Call, error) {
	const arguments = 3 // the order's offset, the sponsor and the signature's offset
	data := append(make([]byte, 0, len(settlerOpenFor)+(arguments+orderWords+1)*word+len(signature)+2*word), settlerOpenFor[:]...)
	data = appendUint(data, arguments*word)
	data, err := appendAddresses(data, o.User)
	if err != nil {
		return Call{}, err
	}
	data = appendUint(data, (arguments+orderWords)*word)
	data = append(data, o.abi[word:]...)
	data = appendBytes(data, TypedSignature(scheme, signature))
	return Call{To: o.InputSettler, Value: new(big.Int), Data: data}, nil
}

// Authorization is what the order's user signs so that openFor takes the input by ERC-3009; the domain is the input token's.
func (o *Order) Authorization(domain SigningDomain) *Authorization {
	return &Authorization{
		Domain: domain, From: o.User, To: o.InputSettler, Payee: true, Value: o.Input.Amount, Before: o.FillDeadline, Nonce: o.ID(),
	}
}

// TypedData is what the order's user signs by a scheme for openFor. The domain is the input token's, for ERC-3009 alone.
func (o *Order) TypedData(scheme wire.SigningScheme, token SigningDomain) (*TypedData, error) {
	if scheme == wire.ERC3009 {
		return o.Authorization(token).TypedData()
	}
	return o.Permit2Permit()
}
