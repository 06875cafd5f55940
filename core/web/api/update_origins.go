package api

import (
	"net/http"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// updateOrigins answers PATCH /v2/origins: the list of the body replaces the account's (RFC 7396).
func (s *Server) updateOrigins(w http.ResponseWriter, r *http.Request) error {
	by, err := caller(r)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	request, err := route.Decode[struct {
		Origins *[]string `json:"origins"`
	}](r)
	if err != nil {
		return err
	}
	if request.Origins == nil {
		return route.Invalid(wire.Issue{Path: "/origins", Message: "is required"})
	}
	origins, err := account.ParseOrigins(*request.Origins)
	if err != nil {
		return err
	}
	entry, err := account.NewAuditEntry(by.AccountID, actor(r), account.OriginsChanged, s.Now())
	if err != nil {
		return err
	}
	if err := s.Identities.SetOrigins(r.Context(), access.OfKey(by.AccountID), by.AccountID, origins, entry.ByKey(by.KeyID)); err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, originsJSON{origins})
}
