package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"intents.internal/pkg/client"
)

const (
	word1111 = "1111111111111111111111111111111111111111111111111111111111111111"
	word2222 = "2222222222222222222222222222222222222222222222222222222222222222"
)

// Signatures of a permit and of the end of an authorization reach the token: of a key as v, r and s, and of an account with code as bytes. The calls
// are those that viem encodes, see typescript/test/sign.test.mjs.
func TestTypedData_TokenCall(t *testing.T) {
	t.Parallel()
	const (
		token   = "0x0Ae627987397e9aaADEeea8D9B57E01C48c504FE"
		owner   = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
		permit  = `{"owner":"` + owner + `","spender":"0x000000000022D473030F116dDEE9F6B43aC78BA3","value":"1000","nonce":"7","deadline":"1800000000"}`
		cancel  = `{"authorizer":"` + owner + `","nonce":"0x00ab00000000000000000000000000000000000000000000000000000000000f"}`
		zero12  = "000000000000000000000000"
		ownerW  = zero12 + "f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
		nonceW  = "00ab00000000000000000000000000000000000000000000000000000000000f"
		bytes33 = "0000000000000000000000000000000000000000000000000000000000000060" + "0000000000000000000000000000000000000000000000000000000000000021"
		v27     = "000000000000000000000000000000000000000000000000000000000000001b"
		v28     = "000000000000000000000000000000000000000000000000000000000000001c"
		rs      = word1111 + word2222
		permitW = ownerW + zero12 + "000000000022d473030f116ddee9f6b43ac78ba3" + "00000000000000000000000000000000000000000000000000000000000003e8" +
			"000000000000000000000000000000000000000000000000000000006b49d200"
	)
	for name, c := range map[string]struct{ kind, message, signature, want string }{
		"a permit":              {"Permit", permit, "0x" + rs + "1c", "0xd505accf" + permitW + v28 + rs},
		"a permit with yParity": {"Permit", permit, "0x" + rs + "00", "0xd505accf" + permitW + v27 + rs},
		"an end":                {"CancelAuthorization", cancel, "0x" + rs + "1b", "0x5a049a70" + ownerW + nonceW + v27 + rs},
		"an end by an account with code": {"CancelAuthorization", cancel, "0x" + word1111 + "22", "0xb7b72899" + ownerW + nonceW + bytes33 +
			word1111 + "22" + strings.Repeat("00", 31)},
	} {
		typed := &client.TypedData{
			Domain: client.TypedDataDomain{ChainID: 31337, VerifyingContract: token}, PrimaryType: c.kind, Message: json.RawMessage(c.message),
		}
		got, err := typed.TokenCall(c.signature)
		want := &client.RelayTransaction{ChainID: 31337, To: token, Value: "0", Data: c.want}
		if diff := gocmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, c := range map[string]struct{ kind, message, signature, want string }{
		"no signature": {"Permit", permit, "0xzz", "read the signature of a Permit: encoding/hex: invalid byte: U+007A 'z'"},
		"a permit by a wallet": {
			"Permit", permit, "0x1111",
			"a permit takes a signature of 65 bytes, by the owner's key, and this has 2: send the approve of Signing.Allowance",
		},
		"no message": {
			"Permit", `{"owner":"-1"}`, "0x" + rs + "1b",
			`read the message of a Permit: "-1" is no number, address or bytes32`,
		},
		"an order": {
			"TransferWithAuthorization", permit, "0x",
			"TransferWithAuthorization is no typed data for the token: give its signature to SubmitSignature",
		},
	} {
		typed := &client.TypedData{PrimaryType: c.kind, Message: json.RawMessage(c.message)}
		if got, err := typed.TokenCall(c.signature); err == nil || err.Error() != c.want || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
