package api

import (
	"errors"
	"net/http"

	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/wire"
)

var (
	errCarried = newError(http.StatusConflict, "STATUS_CONFLICT", "Another transaction has carried this intent; read it again. "+
		"The hash of a user operation is no transaction hash: report the transaction that its bundler sent.")
	errTooManyAttempts = newError(http.StatusConflict, "STATUS_CONFLICT", "As many transactions as an intent can have were reported for this one; read it again. "+
		"The hash of a user operation is no transaction hash: report the transaction that its bundler sent.")
)

// reportTransaction is the change of POST /v2/transfers/{id}/transaction: it records the hash of a transaction that the client
// has sent. The same hash again changes nothing; another hash is another attempt.
func (s *Server) reportTransaction(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error) {
	request, err := decode[struct {
		Hash *string `json:"hash"`
	}](r)
	if err != nil {
		return nil, err
	}
	if request.Hash == nil {
		return nil, invalid(wire.Issue{Path: "/hash", Message: "is required"})
	}
	hash, ok := transfer.ParseHash(*request.Hash)
	if !ok {
		return nil, invalid(wire.Issue{Path: "/hash", Message: "must be a transaction hash: 0x and 64 hexadecimal digits"})
	}
	reported, added, err := s.Store.ReportTransaction(r.Context(), intent.AccountID, intent.ID, hash)
	switch {
	case errors.Is(err, transfer.ErrTransition) && !reported.Executed():
		return nil, errTooManyAttempts
	case errors.Is(err, transfer.ErrTransition):
		return nil, errCarried
	case err != nil:
		return nil, err
	}
	if added && s.Reported != nil {
		s.Reported(intent.Source.Account.Chain, intent.AccountID, intent.ID, hash)
	}
	return reported, nil
}
