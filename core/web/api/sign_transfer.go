package api

import (
	"net/http"

	"intents.internal/core/identity/access"
	"intents.internal/core/signature"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// signTransfer is the change of POST /v2/transfers/{id}/signature: it adds the signature of the intent's typed data, and hands the order to its solver
// where that was asked for.
func (s *Server) signTransfer(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error) {
	request, err := route.Decode[struct {
		Signature *string `json:"signature"`
	}](r)
	if err != nil {
		return nil, err
	}
	if request.Signature == nil {
		return nil, route.Invalid(wire.Issue{Path: "/signature", Message: "is required"})
	}
	given, ok := signature.Parse(*request.Signature, signature.MinLength, signature.MaxLength)
	if !ok {
		return nil, route.Invalid(wire.Issue{Path: "/signature", Message: "must be a signature: 0x and 64 to 4,096 bytes in hexadecimal digits"})
	}
	return s.Quotes.Sign(r.Context(), access.OfKey(intent.AccountID), intent, given)
}
