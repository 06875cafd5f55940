package transfer

import (
	"errors"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/evm"
	"intents.internal/pkg/wire"
)

// Authorization is a transfer that a token's owner authorizes by a signature (ERC-3009). It is valid from the beginning until Before, and once:
// its nonce is the order id.
type Authorization struct {
	// Domain is that of the token.
	Domain SigningDomain
	// From pays To. Payee means that To alone can send it: an input settler that opens an order.
	From, To string
	Payee    bool
	Value    *big.Int
	// Before is in seconds since 1970.
	Before uint32
	Nonce  [32]byte
}

const authorizationMembers = "(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"

var (
	receiveAuthorizationType  = newStructType("ReceiveWithAuthorization" + authorizationMembers)
	transferAuthorizationType = newStructType("TransferWithAuthorization" + authorizationMembers)
	cancelAuthorizationType   = newStructType("CancelAuthorization(address authorizer,bytes32 nonce)")
)

// The functions of ERC-3009 tokens. Those with bytes are of Circle's FiatTokenV2_2; the ERC itself has v, r and s.
const authorizationArguments = "(address,address,uint256,uint256,uint256,bytes32,"

var (
	receiveWithAuthorization     = selector("receiveWithAuthorization" + authorizationArguments + "bytes)")
	transferWithAuthorization    = selector("transferWithAuthorization" + authorizationArguments + "bytes)")
	transferWithAuthorizationVRS = selector("transferWithAuthorization" + authorizationArguments + "uint8,bytes32,bytes32)")
	receiveWithAuthorizationVRS  = selector("receiveWithAuthorization" + authorizationArguments + "uint8,bytes32,bytes32)")
	authorizationState           = selector("authorizationState(address,bytes32)")
)

// AuthorizationEnd is how an authorization has ended.
type AuthorizationEnd string

// The two ends.
const (
	AuthorizationUsed     AuthorizationEnd = "used"
	AuthorizationCanceled AuthorizationEnd = "canceled"
)

// authorizationEnds are the events of ERC-3009 by their first topics.
var authorizationEnds = map[common.Hash]AuthorizationEnd{
	topic("AuthorizationUsed(address,bytes32)"): AuthorizationUsed, topic("AuthorizationCanceled(address,bytes32)"): AuthorizationCanceled,
}

// AuthorizationTopics are the topics of the logs that tell how the authorization of a signed transfer has ended.
func (i *Intent) AuthorizationTopics() [][]common.Hash {
	return [][]common.Hash{slices.Collect(maps.Keys(authorizationEnds)), {addressTopic(i.Source.Account.Address)}, {i.OrderID}}
}

// MatchAuthorization returns how a log of the token tells that the authorization of a signed transfer has ended; ok is false for any other log.
func (i *Intent) MatchAuthorization(l evm.Log) (end AuthorizationEnd, ok bool) {
	if i.Signing.Scheme != wire.ERC3009 || i.Type != Transfer || len(l.Topics) != 3 || l.Address != common.HexToAddress(i.Source.Token.Address) ||
		l.Topics[1] != addressTopic(i.Source.Account.Address) || l.Topics[2] != i.OrderID {
		return "", false
	}
	end, ok = authorizationEnds[l.Topics[0]]
	return end, ok
}

// AuthorizationStateCall returns the calldata that asks the token whether the authorization of a signed transfer was used or cancelled.
func (i *Intent) AuthorizationStateCall() ([]byte, error) {
	a := Authorization{From: i.Source.Account.Address, Nonce: i.OrderID}
	return a.StateCall()
}

// TypedData is what the owner signs.
func (a *Authorization) TypedData() (*TypedData, error) {
	kind := transferAuthorizationType
	if a.Payee {
		kind = receiveAuthorizationType
	}
	return newTypedData(a.Domain, kind, func(m *structEncoder) {
		m.address("from", a.From)
		m.address("to", a.To)
		m.uint256("value", a.Value)
		m.uint("validAfter", 0)
		m.uint("validBefore", uint64(a.Before))
		m.bytes32("nonce", a.Nonce)
	})
}

// Cancel is what the owner signs so that anybody can make the authorization worthless, by the token's cancelAuthorization.
func (a *Authorization) Cancel() (*TypedData, error) {
	return newTypedData(a.Domain, cancelAuthorizationType, func(m *structEncoder) {
		m.address("authorizer", a.From)
		m.bytes32("nonce", a.Nonce)
	})
}

// errSignatureLength is returned for a signature that a token with v, r and s cannot be given.
var errSignatureLength = errors.New("the signature has no v, r and s")

// Call is the call of the token that moves the tokens. vrs means that the token has only the functions of the ERC itself, which take a signature
// of 65 bytes.
func (a *Authorization) Call(signature []byte, vrs bool) (Call, error) {
	function := transferWithAuthorization
	switch {
	case vrs && a.Payee:
		function = receiveWithAuthorizationVRS
	case vrs:
		function = transferWithAuthorizationVRS
	case a.Payee:
		function = receiveWithAuthorization
	}
	data, err := appendAddresses(function[:], a.From, a.To)
	if err != nil {
		return Call{}, err
	}
	if data, err = appendBig(data, a.Value); err != nil {
		return Call{}, err
	}
	data = append(appendUint(appendUint(data, 0), uint64(a.Before)), a.Nonce[:]...)
	const members = 7 // with the offset of the signature
	switch {
	case !vrs:
		data = appendBytes(appendUint(data, members*word), signature)
	case len(signature) != crypto.SignatureLength:
		return Call{}, errSignatureLength
	default:
		data = append(appendUint(data, uint64(signature[crypto.RecoveryIDOffset])), signature[:crypto.RecoveryIDOffset]...)
	}
	return Call{To: a.Domain.Contract, Value: new(big.Int), Data: data}, nil
}

// StateCall returns the calldata that asks the token whether the authorization was used or cancelled, which returns a bool.
func (a *Authorization) StateCall() ([]byte, error) {
	data, err := appendAddresses(authorizationState[:], a.From)
	return append(data, a.Nonce[:]...), err
}

// appendBytes appends a value of ABI type bytes without its offset.
func appendBytes(b, value []byte) []byte {
	b = append(appendUint(b, uint64(len(value))), value...)
	return append(b, make([]byte, (word-len(value)%word)%word)...)
}
