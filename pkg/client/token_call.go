package client

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// The functions of tokens that take a signature, by their selectors.
const (
	permitSelector                   = "d505accf" // permit(address,address,uint256,uint256,uint8,bytes32,bytes32), EIP-2612
	cancelAuthorizationSelector      = "5a049a70" // cancelAuthorization(address,bytes32,uint8,bytes32,bytes32), ERC-3009
	cancelAuthorizationBytesSelector = "b7b72899" // cancelAuthorization(address,bytes32,bytes), Circle's for accounts with code
)

// keySignature is the length of a signature by a key: r, s and v.
const keySignature = 65

// TokenCall returns the transaction that gives the token a signature of the typed data, 0x and hexadecimal: of Signing.Permit, by the token's permit,
// and of a Revocation, by its cancelAuthorization. Any account may send it and pays the gas; it is not reported.
func (t *TypedData) TokenCall(signature string) (*RelayTransaction, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(signature, "0x"))
	if err != nil {
		return nil, fmt.Errorf("read the signature of a %s: %w", t.PrimaryType, err)
	}
	var m struct{ Owner, Spender, Value, Deadline, Authorizer, Nonce string }
	if err := json.Unmarshal(t.Message, &m); err != nil {
		return nil, fmt.Errorf("read the message of a %s: %w", t.PrimaryType, err)
	}
	byKey := len(raw) == keySignature
	var data strings.Builder
	data.WriteString("0x")
	switch {
	case t.PrimaryType == "Permit" && byKey:
		data.WriteString(permitSelector)
		err = appendWords(&data, m.Owner, m.Spender, m.Value, m.Deadline)
	case t.PrimaryType == "CancelAuthorization" && byKey:
		data.WriteString(cancelAuthorizationSelector)
		err = appendWords(&data, m.Authorizer, m.Nonce)
	case t.PrimaryType == "CancelAuthorization":
		data.WriteString(cancelAuthorizationBytesSelector)
		err = appendWords(&data, m.Authorizer, m.Nonce)
	case t.PrimaryType == "Permit":
		return nil, fmt.Errorf("a permit takes a signature of %d bytes, by the owner's key, and this has %d: send the approve of Signing.Allowance",
			keySignature, len(raw))
	default:
		return nil, fmt.Errorf("%s is no typed data for the token: give its signature to SubmitSignature", t.PrimaryType)
	}
	if err != nil {
		return nil, fmt.Errorf("read the message of a %s: %w", t.PrimaryType, err)
	}
	if byKey {
		v := raw[keySignature-1]
		if v < 2 { // some wallets' yParity
			v += 27
		}
		fmt.Fprintf(&data, "%064x%x", v, raw[:keySignature-1])
	} else {
		const word, offset = 32, 3 * 32
		fmt.Fprintf(&data, "%064x%064x%x%s", offset, len(raw), raw, strings.Repeat("00", (word-len(raw)%word)%word))
	}
	return &RelayTransaction{ChainID: t.Domain.ChainID, To: t.Domain.VerifyingContract, Value: "0", Data: data.String()}, nil
}

// appendWords appends values of 32 bytes: decimal numbers, and addresses and bytes32 as 0x and hexadecimal.
func appendWords(b *strings.Builder, values ...string) error {
	for _, value := range values {
		n, ok := new(big.Int).SetString(value, 0)
		if !ok || n.Sign() < 0 || n.BitLen() > 256 {
			return fmt.Errorf("%q is no number, address or bytes32", value)
		}
		fmt.Fprintf(b, "%064x", n)
	}
	return nil
}
