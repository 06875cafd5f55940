package api

import (
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
)

// writeRecord writes the full record of an intent as a response.
func writeRecord(w http.ResponseWriter, status int, r *intents.Record) {
	body := route.NewBuffer()
	defer body.Release()
	body.Bytes = appendRecord(body.Bytes, r)
	route.WriteBody(w, status, body.Bytes)
}

// appendRecord appends the members of the summary, with the additional members of source and destination, and the record's own.
func appendRecord(b []byte, r *intents.Record) []byte {
	i, summary := r.Intent, r.Intent.Summary()
	b = transfer.AppendIdentity(append(b, '{'), &summary)
	b = append(b, `,"reference":`...)
	b = transfer.AppendOptional(b, i.Reference)
	b = transfer.AppendBatchID(b, i.BatchID)
	b = transfer.AppendEnded(b, i.Type, i.Status)
	b = transfer.AppendLabels(b, i.Labels)
	b = transfer.AppendSimulated(b, i.Simulated)
	b = append(b, `,"final":`...)
	b = strconv.AppendBool(b, transfer.Final(i.Type, i.Status))
	b = append(b, `,"failure":`...)
	b = transfer.AppendOptional(b, i.Failure)
	b = transfer.AppendFailureReason(b, r.FailureReason)
	b = append(b, `,"source":`...)
	b = appendLeg(b, i.Source)
	b = append(b, `,"destination":`...)
	b = appendLeg(b, i.Destination)
	b = append(b, `,"deadline":`...)
	b = transfer.AppendTimestamp(b, i.Deadline)
	b = append(b, `,"quote":`...)
	b = appendQuote(b, &i.Quote)
	b = append(b, `,"order":`...)
	b = appendOrder(b, r.Order, &i.Settlement)
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
		b = transfer.AppendText(b, transfer.Unsupported)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"screened":`...)
	b = strconv.AppendBool(b, r.Screened)
	b = append(b, `,"watched":`...)
	b = strconv.AppendBool(b, r.Watched)
	b = append(b, `,"tx":`...)
	b = transfer.AppendTx(b, r.Tx)
	b = append(b, `,"signing":`...)
	b = appendSigning(b, r.Signature)
	return append(b, '}')
}

func appendLeg(b []byte, l transfer.Leg) []byte {
	b = append(b, `{"account":`...)
	b = transfer.AppendAccountID(b, l.Account)
	b = append(b, `,"token":`...)
	b = transfer.AppendAccountID(b, l.Token)
	b = append(b, `,"amount":`...)
	b = transfer.AppendDecimal(b, l.Amount)
	return append(b, '}')
}

// appendQuote appends the quote that an intent was made from, or null for none.
func appendQuote(b []byte, q *transfer.Quote) []byte {
	if q.ID == uuid.Nil {
		return append(b, "null"...)
	}
	b = append(b, `{"id":`...)
	b = transfer.AppendUUID(b, q.ID)
	b = append(b, `,"provider":`...)
	b = transfer.AppendText(b, q.Provider)
	b = append(b, `,"expiresAt":`...)
	b = transfer.AppendTimestamp(b, q.ExpiresAt)
	return append(b, '}')
}

// appendOrder appends every field of the order under its ABI name, so that a client can encode it and compute the order id, or null for an
// intent of a scheme that is no longer supported.
func appendOrder(b []byte, o *transfer.Order, settlement *transfer.Settlement) []byte {
	if o == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"scheme":`...)
	b = transfer.AppendText(b, settlement.Scheme)
	b = append(b, `,"deployment":`...)
	b = transfer.AppendOptional(b, settlement.Deployment)
	b = append(b, `,"inputSettler":`...)
	b = transfer.AppendText(b, o.InputSettler)
	b = append(b, `,"user":`...)
	b = transfer.AppendText(b, o.User)
	b = append(b, `,"nonce":`...)
	b = transfer.AppendDecimal(b, o.Nonce)
	b = append(b, `,"originChainId":`...)
	b = strconv.AppendUint(b, o.OriginChainID, 10)
	b = append(b, `,"expires":`...)
	b = strconv.AppendUint(b, uint64(o.Expires), 10)
	b = append(b, `,"fillDeadline":`...)
	b = strconv.AppendUint(b, uint64(o.FillDeadline), 10)
	b = append(b, `,"inputOracle":`...)
	b = transfer.AppendText(b, o.InputOracle)
	b = append(b, `,"inputs":[{"token":`...)
	b = transfer.AppendText(b, o.Input.Token)
	b = append(b, `,"amount":`...)
	b = transfer.AppendDecimal(b, o.Input.Amount)
	b = append(b, `}],"outputs":[`...)
	b = appendOutput(b, &o.Output)
	b = append(b, `],"encoded":`...)
	b = transfer.AppendHex(b, o.Encoded)
	return append(b, '}')
}

// appendOutput appends a MandateOutput under its ABI names. Its callbackData and context are always empty.
func appendOutput(b []byte, o *transfer.MandateOutput) []byte {
	b = append(b, `{"oracle":`...)
	b = transfer.AppendHex(b, o.Oracle[:])
	b = append(b, `,"settler":`...)
	b = transfer.AppendHex(b, o.Settler[:])
	b = append(b, `,"chainId":`...)
	b = strconv.AppendUint(b, o.ChainID, 10)
	b = append(b, `,"token":`...)
	b = transfer.AppendHex(b, o.Token[:])
	b = append(b, `,"amount":`...)
	b = transfer.AppendDecimal(b, o.Amount)
	b = append(b, `,"recipient":`...)
	b = transfer.AppendHex(b, o.Recipient[:])
	return append(b, `,"callbackData":"0x","context":"0x"}`...)
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

func appendTransaction(b []byte, t *intents.ShownTransaction) []byte {
	b = append(b, `{"role":`...)
	b = transfer.AppendText(b, t.Role)
	b = append(b, `,"chainId":`...)
	b = transfer.AppendChainID(b, t.Chain)
	b = append(b, `,"hash":`...)
	b = transfer.AppendHex(b, t.Hash[:])
	b = append(b, `,"state":`...)
	b = transfer.AppendText(b, t.State)
	b = append(b, `,"blockNumber":`...)
	if t.Block == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, t.Block.Number, 10)
	}
	b = append(b, `,"seenAt":`...)
	b = transfer.AppendTimestamp(b, t.SeenAt)
	b = append(b, `,"explorerUrl":`...)
	b = transfer.AppendOptional(b, t.ExplorerURL)
	return append(b, '}')
}
