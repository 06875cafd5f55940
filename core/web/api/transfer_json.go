package api

import (
	"math/big"
	"net/http"
	"strconv"

	"intents.internal/core/intent"
	"intents.internal/core/intent/representation"
	"intents.internal/core/intent/transfer"
)

// writeRecord writes the full record of an intent as a response.
func writeRecord(w http.ResponseWriter, status int, r *intent.Record) {
	body := newBuffer()
	defer body.release()
	body.json = appendRecord(body.json, r)
	writeBody(w, status, body.json)
}

// appendRecord appends the members of the summary, with the additional members of source and destination, and the record's own.
func appendRecord(b []byte, r *intent.Record) []byte {
	i, summary := r.Intent, r.Intent.Summary()
	b = representation.AppendIdentity(append(b, '{'), &summary)
	b = append(b, `,"reference":`...)
	b = representation.AppendOptional(b, i.Reference)
	b = append(b, `,"final":`...)
	b = strconv.AppendBool(b, transfer.Final(i.Type, i.Status))
	b = append(b, `,"failure":`...)
	b = representation.AppendOptional(b, i.Failure)
	b = append(b, `,"source":`...)
	b = appendLeg(b, i.Source)
	b = append(b, `,"destination":`...)
	b = appendLeg(b, i.Destination)
	b = append(b, `,"deadline":`...)
	b = representation.AppendTimestamp(b, i.Deadline)
	b = append(b, `,"order":`...)
	b = appendOrder(b, &r.Order, i.Settlement)
	b = append(b, `,"confirmations":`...)
	b = appendConfirmations(b, r.Confirmations)
	b = append(b, `,"transactions":[`...)
	for n := range r.Transactions {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendTransaction(b, &r.Transactions[n])
	}
	b = append(b, `],"refundable":`...)
	b = strconv.AppendBool(b, r.Refundable)
	b = append(b, `,"verification":`...)
	if r.Unverifiable {
		b = representation.AppendText(b, transfer.Unsupported)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"tx":`...)
	b = representation.AppendTx(b, r.Tx)
	return append(b, '}')
}

func appendLeg(b []byte, l transfer.Leg) []byte {
	b = append(b, `{"account":`...)
	b = representation.AppendAccountID(b, l.Account)
	b = append(b, `,"token":`...)
	b = representation.AppendAccountID(b, l.Token)
	b = append(b, `,"amount":`...)
	b = representation.AppendDecimal(b, l.Amount)
	return append(b, '}')
}

// appendOrder appends every field of OrderData under its ABI name, so that a client can encode it and compute the order id.
func appendOrder(b []byte, o *transfer.Order, settlement transfer.Settlement) []byte {
	text := func(name, value string) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = representation.AppendOptional(b, value)
	}
	bytes := func(name string, value []byte) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = representation.AppendHex(b, value)
	}
	amount := func(name string, value *big.Int) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = representation.AppendDecimal(b, value)
	}
	number := func(name string, value uint32) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = strconv.AppendUint(b, uint64(value), 10)
	}
	b = append(b, `{"scheme":`...)
	b = representation.AppendText(b, settlement.Scheme)
	text("originSettler", settlement.OriginSettler)
	bytes("sender", o.Sender[:])
	bytes("recipient", o.Recipient[:])
	bytes("inputToken", o.InputToken[:])
	bytes("outputToken", o.OutputToken[:])
	amount("amountIn", o.AmountIn)
	amount("amountOut", o.AmountOut)
	amount("senderNonce", o.SenderNonce)
	number("originDomain", o.OriginDomain)
	number("destinationDomain", o.DestinationDomain)
	bytes("destinationSettler", o.DestinationSettler[:])
	number("fillDeadline", o.FillDeadline)
	bytes("data", o.Data)
	bytes("orderData", o.Encoded)
	return append(b, '}')
}

func appendConfirmations(b []byte, c *transfer.Confirmations) []byte {
	if c == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"have":`...)
	b = strconv.AppendUint(b, c.Have, 10)
	b = append(b, `,"need":`...)
	b = strconv.AppendUint(b, c.Need, 10)
	b = append(b, `,"finalized":`...)
	b = strconv.AppendBool(b, c.Finalized)
	return append(b, '}')
}

func appendTransaction(b []byte, t *transfer.Transaction) []byte {
	b = append(b, `{"role":`...)
	b = representation.AppendText(b, t.Role)
	b = append(b, `,"chainId":`...)
	b = representation.AppendChainID(b, t.Chain)
	b = append(b, `,"hash":`...)
	b = representation.AppendHex(b, t.Hash[:])
	b = append(b, `,"state":`...)
	b = representation.AppendText(b, t.State)
	b = append(b, `,"blockNumber":`...)
	if t.Block == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, t.Block.Number, 10)
	}
	b = append(b, `,"seenAt":`...)
	b = representation.AppendTimestamp(b, t.SeenAt)
	return append(b, '}')
}
