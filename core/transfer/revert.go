package transfer

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/ethereum/go-ethereum/accounts/abi"
)

// maxReason is how many bytes of a contract's own words are shown.
const maxReason = 200

// customErrors are the errors that settlers and tokens of this service are known to revert with, in words that follow "reverts, because".
var customErrors = map[[4]byte]string{
	selector("InvalidNonce()"):                                      "the settler has used the order's nonce: the order was opened before, or its nonce was invalidated",
	selector("ERC20InsufficientBalance(address,uint256,uint256)"):   "the account has too little of the token",
	selector("ERC20InsufficientAllowance(address,uint256,uint256)"): "the allowance is too small",
	selector("SafeERC20FailedOperation(address)"):                   "the token refuses to be moved",
}

// RevertReason says in one sentence why a transaction reverts, by the data that it returns; message is what the node says, for nodes that
// leave out the data. Both are a stranger's words, of which only short printable ones are repeated.
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

// NodeRefusal says in one sentence that a node refuses to simulate a transaction, as it does where the account cannot pay for it. The
// message is the node's.
func NodeRefusal(message string) string {
	return fmt.Sprintf("The node refuses to simulate the transaction: %q.", printable(message))
}

var panicSelector = selector("Panic(uint256)")

// printable leaves what can be shown on one line, cut to maxReason bytes.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text[:min(len(text), maxReason)])
	return strings.TrimSuffix(strings.TrimSpace(text), ".")
}
