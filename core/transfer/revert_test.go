package transfer_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/transfer"
)

// The reasons that recorded transactions of senders revert with, by their return data.
func TestRevertReason_Recorded(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"(no data)":                  "The transaction reverts without a reason.",
		"InvalidOrderStatus()":       "The transaction reverts, because somebody has opened the order before, or it has ended.",
		"TimestampPassed()":          "The transaction reverts, because the order's deadline has passed.",
		"TimestampNotPassed()":       "The transaction reverts, because the order has not expired yet.",
		"HasDirtyBits()":             "The transaction reverts, because the order's input token is no address.",
		"UserIsZero()":               "The transaction reverts, because the order's user is the zero address.",
		"FailedCall()":               "The transaction reverts, because the sender's contract accepts no native token.",
		"WrongChain":                 "The transaction reverts, because the order is of another chain.",
		"FillDeadlineAfterExpiry":    "The transaction reverts, because the order expires before its deadline.",
		"InvalidNativeValue":         "The transaction reverts, because the value is not exactly the order's native input.",
		"SafeERC20FailedOperation":   "The transaction reverts, because the token refuses to be moved, or is no contract.",
		"ERC20InsufficientAllowance": "The transaction reverts, because the allowance is too small.",
		"ERC20InsufficientBalance":   "The transaction reverts, because the account has too little of the token.",
		"Error(ERC20: transfer amount exceeds allowance)": `The transaction reverts with the text "ERC20: transfer amount exceeds allowance".`,
		"Error(ERC20: transfer amount exceeds balance)":   `The transaction reverts with the text "ERC20: transfer amount exceeds balance".`,
	}
	got := map[string]string{}
	for _, c := range recorded(t).Cases {
		for _, step := range c.Steps {
			if step.Error == "" || !strings.HasPrefix(step.Data, "0x7515fd56") && !strings.HasPrefix(step.Data, "0x48f49eaf") && !strings.HasPrefix(step.Step, "simulate open") {
				continue
			}
			name := step.Error
			if _, ok := want[name]; !ok {
				name, _, _ = strings.Cut(name, "(") // without the arguments
			}
			got[name] = transfer.RevertReason(step.Revert)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The errors of the recorded contracts' sources that open, refund or approve can meet have a sentence of their own; those of solvers have not.
func TestRevertReason_Errors(t *testing.T) {
	t.Parallel()
	want := []string{
		"CodeSize0()", "ERC20InsufficientAllowance(address,uint256,uint256)", "ERC20InsufficientBalance(address,uint256,uint256)",
		"ERC20InvalidApprover(address)", "ERC20InvalidReceiver(address)", "ERC20InvalidSender(address)", "ERC20InvalidSpender(address)",
		"FailedCall()", "FillDeadlineAfterExpiry(uint32,uint32)", "HasDirtyBits()", "InsufficientBalance(uint256,uint256)",
		"InvalidBalanceDelta(uint256,uint256)", "InvalidNativeValue(uint256,uint256)", "InvalidOrderStatus()", "InvalidSigner()",
		"NativeTokenNotSupported()", "ReentrancyDetected()", "SafeERC20FailedOperation(address)", "SignatureAndInputsNotEqual()",
		"SignatureNotSupported(bytes1)", "TimestampNotPassed()", "TimestampPassed()", "UserIsZero()",
		"WrongChain(uint256,uint256)",
	}
	var got []string
	for selector, signature := range recorded(t).Errors {
		data := crypto.Keccak256([]byte(signature))[:4]
		if hexed(data) != selector {
			t.Errorf("%s has the selector %x", signature, data)
		}
		if strings.HasPrefix(transfer.RevertReason(data), "The transaction reverts, because ") {
			got = append(got, signature)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	plain := []string{"Error(string)", "Panic(uint256)", "TransferFailed()"} // the first two have texts of their own, and the last is of payouts
	for selector, signature := range recordedGasless(t).Errors {
		reason := transfer.RevertReason(common.FromHex(selector))
		if strings.HasPrefix(reason, "The transaction reverts, because ") == slices.Contains(plain, signature) {
			t.Errorf("signed orders, %s: %s", signature, reason)
		}
	}
}

func TestRevertReason(t *testing.T) {
	t.Parallel()
	const text = "08c379a0" + "0000000000000000000000000000000000000000000000000000000000000020"
	for name, c := range map[string]struct{ data, want string }{
		"Error": {
			text + "0000000000000000000000000000000000000000000000000000000000000006" + hex.EncodeToString([]byte("no way")) + strings.Repeat("00", 26),
			`The transaction reverts with the text "no way".`,
		},
		"Error with controls": {
			text + "0000000000000000000000000000000000000000000000000000000000000004" + "0a22ff61" + strings.Repeat("00", 28),
			`The transaction reverts with the text "\"a".`,
		},
		"Error cut off":     {text, "The transaction reverts with the error 0x08c379a0."},
		"Error of 1000 a's": {text + strings.Repeat("0", 61) + "3e8" + strings.Repeat("61", 1024), `The transaction reverts with the text "` + strings.Repeat("a", 200) + `".`},
		"Panic":             {"4e487b71" + strings.Repeat("0", 62) + "11", "The transaction reverts with a panic: arithmetic underflow or overflow."},
		"another panic":     {"4e487b71" + strings.Repeat("0", 62) + "ff", "The transaction reverts with a panic: unknown panic code: 0xff."},
		// A node prints this selector as text.
		"four printable bytes": {"4a313c2d", "The transaction reverts, because the order's deadline has passed."},
		"unknown error":        {"deadbeef01", "The transaction reverts with the error 0xdeadbeef."},
		"an unknown name":      {hex.EncodeToString([]byte("J1<.")), "The transaction reverts with the error 0x4a313c2e."},
		"too short":            {"2916ae", "The transaction reverts without a reason."},
		"no data":              {"", "The transaction reverts without a reason."},
	} {
		data, err := hex.DecodeString(c.data)
		if err != nil {
			t.Fatal(err)
		}
		if got := transfer.RevertReason(data); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func FuzzRevertReason(f *testing.F) {
	f.Add([]byte{0x08, 0xc3, 0x79, 0xa0}, "execution reverted: \xff\n")
	f.Fuzz(func(t *testing.T, data []byte, message string) {
		for _, got := range []string{transfer.RevertReason(data), transfer.NodeRefusal(message)} {
			if !utf8.ValidString(got) || len(got) > 1000 || strings.ContainsAny(got, "\n\r\x00") || !strings.HasSuffix(got, ".") {
				t.Errorf("%q", got)
			}
		}
	})
}
