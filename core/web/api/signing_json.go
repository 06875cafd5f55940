package api

import "intents.internal/core/transfer"

// appendSigning appends what the user signs in place of a transaction, or null for an intent whose user sends one. The signature is not among it.
func appendSigning(b []byte, s *transfer.Signature) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"scheme":`...)
	b = transfer.AppendText(b, s.Scheme)
	b = append(b, `,"typedData":`...)
	b = transfer.AppendTypedData(b, s.TypedData)
	b = append(b, `,"digest":`...)
	if s.Digest == [32]byte{} {
		b = append(b, "null"...)
	} else {
		b = transfer.AppendHex(b, s.Digest[:])
	}
	b = append(b, `,"expiresAt":`...)
	b = transfer.AppendTimestamp(b, s.ExpiresAt)
	b = append(b, `,"allowance":`...)
	if s.Allowance == nil {
		b = append(b, "null"...)
	} else {
		b = transfer.AppendAllowance(b, *s.Allowance)
	}
	b = append(b, `,"permit":`...)
	b = transfer.AppendTypedData(b, s.Permit)
	b = append(b, `,"signedAt":`...)
	if s.SignedAt.IsZero() {
		b = append(b, "null"...)
	} else {
		b = transfer.AppendTimestamp(b, s.SignedAt)
	}
	b = append(b, `,"submitted":`...)
	b = appendSubmission(b, s.Submitted)
	b = append(b, `,"revoke":`...)
	switch r := s.Revoke; {
	case r == nil:
		b = append(b, "null"...)
	case r.Tx != nil:
		b = transfer.AppendTx(b, r.Tx)
	default:
		b = transfer.AppendTypedData(b, r.TypedData)
	}
	return append(b, '}')
}

// appendSubmission appends what became of handing the order to its solver, or null before.
func appendSubmission(b []byte, s *transfer.Submission) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"provider":`...)
	b = transfer.AppendText(b, s.Provider)
	b = append(b, `,"status":`...)
	b = transfer.AppendText(b, s.Status)
	b = append(b, `,"at":`...)
	b = transfer.AppendTimestamp(b, s.At)
	b = append(b, `,"detail":`...)
	b = transfer.AppendOptional(b, s.Detail)
	return append(b, '}')
}
