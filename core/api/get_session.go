package api

import (
	"errors"
	"net/http"
)

type sessionJSON struct {
	ID        string    `json:"id"`
	UserID    string    `json:"userId"`
	IPAddress string    `json:"ipAddress"`
	UserAgent string    `json:"userAgent"`
	ExpiresAt timestamp `json:"expiresAt"`
	CreatedAt timestamp `json:"createdAt"`
	UpdatedAt timestamp `json:"updatedAt"`
}

// getSession answers GET /auth/get-session with the session and its account, or with null for a browser that is not
// signed in.
func (s *Server) getSession(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	session, owner, err := s.signedIn(r)
	if errors.Is(err, errSignedOut) {
		return writeJSON(w, http.StatusOK, nil)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		Session sessionJSON `json:"session"`
		User    userJSON    `json:"user"`
	}{
		Session: sessionJSON{
			ID: session.ID.String(), UserID: owner.ID.String(), IPAddress: session.IPAddress, UserAgent: session.UserAgent,
			ExpiresAt: timestamp(session.ExpiresAt), CreatedAt: timestamp(session.CreatedAt), UpdatedAt: timestamp(session.UpdatedAt),
		},
		User: newUserJSON(owner),
	})
}
