package api

import (
	"errors"
	"fmt"
	"net/http"

	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// updateTransfer is the change of PATCH /v2/transfers/{id}: it changes the reference and the labels of an intent in any status.
func (s *Server) updateTransfer(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error) {
	body, err := route.ReadBody(r)
	if err != nil {
		return nil, err
	}
	update, issues := wire.DecodeTransferUpdate(body)
	if len(issues) > 0 {
		return nil, route.Invalid(issues...)
	}
	updated, err := s.Transfers.Update(r.Context(), intent.AccountID, intent.ID, update)
	if errors.Is(err, transfer.ErrTooManyLabels) {
		return nil, route.Invalid(wire.Issue{
			Path: "/labels", Message: fmt.Sprintf("must leave the intent no more than %d labels; remove some by null", wire.MaxLabels),
		})
	}
	return updated, err
}
