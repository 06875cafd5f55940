package transfer

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// Timestamp is a time as ISO 8601 in UTC with milliseconds. It is a string, because encoding/json would validate the output of a
// MarshalText method again.
type Timestamp string

// NewTimestamp formats a time, truncated to milliseconds.
func NewTimestamp(t time.Time) Timestamp {
	return Timestamp(appendTime(nil, t))
}

// OptionalTimestamp returns nil for no time, which is null in JSON.
func OptionalTimestamp(t *time.Time) *Timestamp {
	if t == nil {
		return nil
	}
	stamp := NewTimestamp(*t)
	return &stamp
}

// Optional returns nil for an empty text, which is null in JSON.
func Optional[Text ~string](s Text) *Text {
	if s == "" {
		return nil
	}
	return &s
}

// AppendTimestamp appends a time in the format of NewTimestamp, as a JSON string.
func AppendTimestamp(b []byte, t time.Time) []byte {
	return append(appendTime(append(b, '"'), t), '"')
}

// appendTime appends a time as ISO 8601. It uses RFC3339 because package time has a fast path for that layout.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	b = t.AppendFormat(b, time.RFC3339)
	milli := t.Nanosecond() / int(time.Millisecond)
	const digits = "0123456789"
	return append(b[:len(b)-len("Z")], '.', digits[milli/100], digits[milli/10%10], digits[milli%10], 'Z')
}

// unescaped are the ASCII characters that encoding/json does not escape.
var unescaped = func() (table [256]bool) {
	for c := ' '; c <= '~'; c++ {
		table[c] = !strings.ContainsRune(`"\<>&`, c)
	}
	return table
}()

// AppendText appends a JSON string.
func AppendText[Text ~string](b []byte, s Text) []byte {
	for i := range len(s) {
		if !unescaped[s[i]] {
			escaped, _ := json.Marshal(string(s)) // never fails for a string
			return append(b, escaped...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// AppendOptional appends a JSON string, or null for an empty text.
func AppendOptional[Text ~string](b []byte, s Text) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return AppendText(b, s)
}

// AppendHex appends bytes as a JSON string of 0x and lower-case hexadecimal digits.
func AppendHex(b, value []byte) []byte {
	return append(hex.AppendEncode(append(b, `"0x`...), value), '"')
}

// AppendUUID appends an id as a JSON string.
func AppendUUID(b []byte, id uuid.UUID) []byte {
	b = hex.AppendEncode(append(b, '"'), id[:4])
	for _, group := range [...][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		b = hex.AppendEncode(append(b, '-'), group)
	}
	return append(b, '"')
}

// AppendChainID appends a CAIP-2 chain id as a JSON string. The grammar has no character that JSON escapes.
func AppendChainID(b []byte, id caip.ChainID) []byte {
	return append(appendChainID(append(b, '"'), id), '"')
}

func appendChainID(b []byte, id caip.ChainID) []byte {
	b = append(b, id.Namespace...)
	b = append(b, ':')
	return append(b, id.Reference...)
}

// AppendAccountID appends a CAIP-10 account id as a JSON string. The grammar has no character that JSON escapes.
func AppendAccountID(b []byte, id caip.AccountID) []byte {
	b = append(appendChainID(append(b, '"'), id.Chain), ':')
	b = append(b, id.Address...)
	return append(b, '"')
}

// AppendSummary appends the summary of an intent, which lists show.
func AppendSummary(b []byte, t *Summary) []byte {
	return append(AppendSummaryMembers(append(b, '{'), t), '}')
}

// AppendSummaryMembers appends the members of a summary without the object's braces, for an object with further members. Amounts
// are in the token's smallest unit.
func AppendSummaryMembers(b []byte, t *Summary) []byte {
	b = AppendIdentity(b, t)
	b = append(b, `,"source":`...)
	b = appendSummaryLeg(b, &t.Source)
	b = append(b, `,"destination":`...)
	b = appendSummaryLeg(b, &t.Destination)
	b = append(b, `,"deadline":`...)
	b = AppendTimestamp(b, t.Deadline)
	b = append(b, `,"reference":`...)
	b = AppendOptional(b, t.Reference)
	b = AppendLabels(b, t.Labels)
	b = AppendBatchID(b, t.BatchID)
	b = AppendOptional(append(b, `,"signing":`...), t.Signing)
	return AppendEnded(b, t.Type, t.Status)
}

// appendSummaryLeg appends one side of a summary. Neither addresses nor amounts have a character that JSON escapes.
func appendSummaryLeg(b []byte, l *SummaryLeg) []byte {
	b = append(appendChainID(append(b, `{"account":"`...), l.Chain), ':')
	b = append(b, l.Account...)
	b = append(appendChainID(append(b, `","token":"`...), l.Chain), ':')
	b = append(b, l.Token...)
	b = append(b, `","amount":"`...)
	b = append(b, l.Amount...)
	return append(b, `"}`...)
}

// AppendLabels appends the member "labels", an empty object for none.
func AppendLabels(b []byte, labels wire.Labels) []byte {
	b = append(b, `,"labels":`...)
	if labels == "" {
		return append(b, "{}"...)
	}
	return append(b, labels...)
}

// AppendBatchID appends the member "batchId", null for an intent that was created alone.
func AppendBatchID(b []byte, id uuid.UUID) []byte {
	b = append(b, `,"batchId":`...)
	if id == uuid.Nil {
		return append(b, "null"...)
	}
	return AppendUUID(b, id)
}

// AppendEnded appends the member "ended" of an intent in a status.
func AppendEnded(b []byte, kind Type, status Status) []byte {
	return strconv.AppendBool(append(b, `,"ended":`...), Ended(kind, status))
}

// AppendSimulated appends the member "simulated" of what was simulated; nothing else has it.
func AppendSimulated(b []byte, simulated bool) []byte {
	if !simulated {
		return b
	}
	return append(b, `,"simulated":true`...)
}

// AppendIdentity appends the first members of a summary, up to its environment.
func AppendIdentity(b []byte, t *Summary) []byte {
	b = append(b, `"id":`...)
	b = AppendUUID(b, t.ID)
	b = append(b, `,"type":`...)
	b = AppendText(b, t.Type)
	b = append(b, `,"status":`...)
	b = AppendText(b, t.Status)
	b = append(b, `,"orderId":`...)
	b = AppendHex(b, t.OrderID[:])
	b = append(b, `,"createdAt":`...)
	created := len(b)
	b = AppendTimestamp(b, t.CreatedAt)
	stamp := b[created:]
	b = append(b, `,"updatedAt":`...)
	if t.UpdatedAt.Equal(t.CreatedAt) {
		b = append(b, stamp...)
	} else {
		b = AppendTimestamp(b, t.UpdatedAt)
	}
	b = append(b, `,"metadata":{"chainId":`...)
	b = AppendChainID(b, t.Source.Chain)
	if t.Hash != "" {
		b = append(b, `,"hash":`...)
		b = AppendText(b, t.Hash)
	}
	return AppendText(append(b, `},"environment":`...), t.Environment)
}

// AppendTx appends the transaction that a wallet signs, or null for none. chainId is the EIP-155 number of transactions, not the
// CAIP-2 id.
func AppendTx(b []byte, tx *Tx) []byte {
	if tx == nil {
		return append(b, "null"...)
	}
	number, _ := tx.Chain.Number() // the registry has eip155 chains only
	b = append(b, `{"chainId":`...)
	b = strconv.AppendUint(b, number, 10)
	b = append(b, `,"from":`...)
	b = AppendText(b, tx.From)
	b = append(b, ',')
	b = appendCall(b, tx.Call, AppendDecimal)
	b = append(b, `,"allowances":[`...)
	for n, a := range tx.Allowances {
		if n > 0 {
			b = append(b, ',')
		}
		b = AppendAllowance(b, a)
	}
	b = append(b, `],"calls":`...)
	b = AppendSendCalls(b, tx.Chain, tx.From, tx.Calls())
	return append(b, '}')
}

// AppendRelayTx appends a transaction that any account can send: it has no sender.
func AppendRelayTx(b []byte, tx *Tx) []byte {
	number, _ := tx.Chain.Number() // the registry has eip155 chains only
	b = strconv.AppendUint(append(b, `{"chainId":`...), number, 10)
	b = appendCall(append(b, ','), tx.Call, AppendDecimal)
	return append(b, '}')
}

// AppendAllowance appends an ERC-20 allowance and the calls that grant and reset it.
func AppendAllowance(b []byte, a Allowance) []byte {
	b = append(b, `{"token":`...)
	b = AppendAccountID(b, a.Token)
	b = append(b, `,"owner":`...)
	b = AppendText(b, a.Owner)
	b = append(b, `,"spender":`...)
	b = AppendText(b, a.Spender)
	b = append(b, `,"amount":`...)
	b = AppendDecimal(b, a.Amount)
	b = append(b, `,"approve":{`...)
	b = appendCall(b, a.Approve, AppendDecimal)
	b = append(b, `},"reset":{`...)
	b = appendCall(b, a.Reset, AppendDecimal)
	return append(b, `}}`...)
}

// appendCall appends the members of a call; value appends its value in wei.
func appendCall(b []byte, c Call, value func([]byte, *big.Int) []byte) []byte {
	b = append(b, `"to":`...)
	b = AppendText(b, c.To)
	b = append(b, `,"value":`...)
	b = value(b, c.Value)
	b = append(b, `,"data":`...)
	return AppendHex(b, c.Data)
}

// AppendFailureReason appends the member failureReason.
func AppendFailureReason(b []byte, r *FailureReason) []byte {
	b = append(b, `,"failureReason":`...)
	if r == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"message":`...)
	b = AppendText(b, r.Message)
	b = append(b, `,"hash":`...)
	b = AppendText(b, r.Hash)
	b = append(b, `,"blockNumber":`...)
	if r.Block == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, r.Block.Number, 10)
	}
	b = append(b, `,"expected":`...)
	b = AppendOptional(b, r.Expected)
	b = append(b, `,"found":`...)
	b = AppendOptional(b, r.Found)
	return append(b, '}')
}

// AppendDecimal appends a number as a JSON string of decimal digits.
func AppendDecimal(b []byte, n *big.Int) []byte {
	b = append(b, '"')
	if n.IsUint64() { // up to 18 of a token with 18 decimals: without garbage, unlike big.Int
		b = strconv.AppendUint(b, n.Uint64(), 10)
	} else {
		b = n.Append(b, 10)
	}
	return append(b, '"')
}

// appendQuantity appends a number as a JSON string of 0x and hexadecimal digits, the quantity of Ethereum's JSON-RPC.
func appendQuantity(b []byte, n *big.Int) []byte {
	return append(n.Append(append(b, `"0x`...), 16), '"')
}
