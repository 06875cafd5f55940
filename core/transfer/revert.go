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

// customErrors are the custom errors of settlers and tokens that a sender's transactions can meet, each with a text that follows "reverts,
// because".
var customErrors = map[[4]byte]string{
	selector("InvalidOrderStatus()"):                                "somebody has opened the order before, or it has ended",
	selector("TimestampPassed()"):                                   "the order's deadline has passed",
	selector("TimestampNotPassed()"):                                "the order has not expired yet",
	selector("FillDeadlineAfterExpiry(uint32,uint32)"):              "the order expires before its deadline",
	selector("WrongChain(uint256,uint256)"):                         "the order is of another chain",
	selector("HasDirtyBits()"):                                      "the order's input token is no address",
	selector("UserIsZero()"):                                        "the order's user is the zero address",
	selector("NativeTokenNotSupported()"):                           "the settler takes no native token",
	selector("InvalidNativeValue(uint256,uint256)"):                 "the value is not exactly the order's native input",
	selector("InvalidSigner()"):                                     "the signature is by another key, or of another order, chain or settler",
	selector("InvalidContractSignature()"):                          "the account's contract does not accept the signature",
	selector("InvalidSignature()"):                                  "the signature is none of a key",
	selector("InvalidSignatureLength()"):                            "the signature has not the length of a key's",
	selector("SignatureExpired(uint256)"):                           "the signature has expired",
	selector("InvalidNonce()"):                                      "the order's nonce at Permit2 was used or given up",
	selector("SignatureAndInputsNotEqual()"):                        "the token refuses the authorization",
	selector("SignatureNotSupported(bytes1)"):                       "the settler does not know this kind of signature",
	selector("InsufficientBalance(uint256,uint256)"):                "the contract has too little of the native token",
	selector("InvalidBalanceDelta(uint256,uint256)"):                "the token delivered another amount than the order's, as one with a fee on transfers does",
	selector("ReentrancyDetected()"):                                "the token calls the settler back",
	selector("FailedCall()"):                                        "the sender's contract accepts no native token",
	selector("CodeSize0()"):                                         "the token is no contract",
	selector("SafeERC20FailedOperation(address)"):                   "the token refuses to be moved, or is no contract",
	selector("ERC20InsufficientBalance(address,uint256,uint256)"):   "the account has too little of the token",
	selector("ERC20InsufficientAllowance(address,uint256,uint256)"): "the allowance is too small",
	selector("ERC20InvalidSender(address)"):                         "the token does not accept the sender",
	selector("ERC20InvalidReceiver(address)"):                       "the token does not accept the recipient",
	selector("ERC20InvalidApprover(address)"):                       "the token does not accept who approves",
	selector("ERC20InvalidSpender(address)"):                        "the token does not accept the spender",
}

// RevertReason returns one sentence on why a transaction reverts, from its return data. The data are untrusted, so only short printable
// text is repeated. A node's own text is not used: nodes print four bytes of an error as text.
func RevertReason(data []byte) string {
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
	default:
		return "The transaction reverts without a reason."
	}
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
