package transfer

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/ethereum/go-ethereum/accounts/abi"
)

// maxReason bounds the bytes of a contract's or node's text that are shown.
const maxReason = 200

// customErrors are the known custom errors of settlers and tokens, each with a text that follows "reverts, because".
var customErrors = map[[4]byte]string{
	selector("InvalidNonce()"):                                      "the settler has used the order's nonce: the order was opened before, or its nonce was invalidated",
	selector("ERC20InsufficientBalance(address,uint256,uint256)"):   "the account has too little of the token",
	selector("ERC20InsufficientAllowance(address,uint256,uint256)"): "the allowance is too small",
	selector("SafeERC20FailedOperation(address)"):                   "the token refuses to be moved",
}

// RevertReason returns one sentence on why a transaction reverts, from its return data; message is the node's, for nodes that
// omit the data. Both are untrusted, so only short printable text is repeated.
func RevertReason(data []byte, message string) string {
	reason, err := abi.UnpackRevert(data)
	switch {
	case err == nil && data[0] == panicSelector[0]:
		return fmt.Sprintf("The transaction reverts with a panic: %s.", printable(reason))
	case err == nil:
		return fmt.Sprintf("The transaction reverts with the text %q.", printable(reason))
	case len(data) >= 4 && customErrors[[4]byte(data)] != "":
		return fmt.Sprintf("The transaction reverts, because %s.", customErrors[[4]byte(data)])
	case len(data) >= 4:
		return fmt.Sprintf("The transaction reverts with the error 0x%s.", hex.EncodeToString(data[:4]))
	}
	_, reason, _ = strings.Cut(message, "execution reverted")
	if reason = printable(strings.TrimLeft(reason, ": ")); reason != "" {
		return fmt.Sprintf("The transaction reverts with the text %q.", reason)
	}
	return "The transaction reverts without a reason."
}

// NodeRefusal returns one sentence on a node's refusal to simulate a transaction, such as for an account that cannot pay for it.
// The message is the node's.
func NodeRefusal(message string) string {
	return fmt.Sprintf("The node refuses to simulate the transaction: %q.", printable(message))
}

var panicSelector = selector("Panic(uint256)")

// printable keeps what can be shown on one line, truncated to maxReason bytes.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text[:min(len(text), maxReason)])
	return strings.TrimSuffix(strings.TrimSpace(text), ".")
}
