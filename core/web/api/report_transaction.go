package api

import (
	"net/http"

	"intents.internal/core/identity/access"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// reportTransaction is the change of POST /v2/transfers/{id}/transaction: it adds the hash of a transaction that the client
// has sent.
func (s *Server) reportTransaction(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error) {
	request, err := route.Decode[struct {
		Hash *string `json:"hash"`
	}](r)
	if err != nil {
		return nil, err
	}
	hash, issues := parseHash(request.Hash)
	if len(issues) > 0 {
		return nil, route.Invalid(issues...)
	}
	return s.Intents.Report(r.Context(), access.OfKey(intent.AccountID), intent, hash)
}

// parseHash parses the member hash of a report.
func parseHash(given *string) (hash [32]byte, issues []wire.Issue) {
	if given == nil {
		return hash, []wire.Issue{{Path: "/hash", Message: "is required"}}
	}
	hash, ok := transfer.ParseHash(*given)
	if !ok {
		return hash, []wire.Issue{{Path: "/hash", Message: "must be a transaction hash: 0x and 64 hexadecimal digits"}}
	}
	return hash, nil
}
