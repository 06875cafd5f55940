package representation

import (
	"math/big"
	"strconv"

	"intents.internal/core/intent/transfer"
)

// AppendTx appends the transaction that a wallet signs, or null for none. chainId is the EIP-155 number of transactions, not the
// CAIP-2 id.
func AppendTx(b []byte, tx *transfer.Tx) []byte {
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
		b = appendAllowance(b, a)
	}
	b = append(b, `],"calls":`...)
	b = AppendSendCalls(b, tx)
	return append(b, '}')
}

// appendAllowance appends an ERC-20 allowance and the call that grants it.
func appendAllowance(b []byte, a transfer.Allowance) []byte {
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
	return append(b, `}}`...)
}

// AppendSendCalls appends the parameter of wallet_sendCalls (EIP-5792), whose numbers are hexadecimal. atomicRequired is false:
// wallets that cannot execute the calls as one transaction send them one after the other.
func AppendSendCalls(b []byte, tx *transfer.Tx) []byte {
	number, _ := tx.Chain.Number() // the registry has eip155 chains only
	b = append(b, `{"version":"2.0.0","chainId":"0x`...)
	b = strconv.AppendUint(b, number, 16)
	b = append(b, `","from":`...)
	b = AppendText(b, tx.From)
	b = append(b, `,"atomicRequired":false,"calls":[`...)
	for n, c := range tx.Calls() {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		b = appendCall(b, c, appendQuantity)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

// appendCall appends the members of a call; value appends its value in wei.
func appendCall(b []byte, c transfer.Call, value func([]byte, *big.Int) []byte) []byte {
	b = append(b, `"to":`...)
	b = AppendText(b, c.To)
	b = append(b, `,"value":`...)
	b = value(b, c.Value)
	b = append(b, `,"data":`...)
	return AppendHex(b, c.Data)
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
