package auth

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
)

// require calls an endpoint if the limits admit the request and the person's role in the acting account allows what the endpoint
// needs.
func (s *Server) require(need identity.Need, answer route.Endpoint) route.Endpoint {
	if need == identity.Anyone {
		return func(w http.ResponseWriter, r *http.Request) error {
			visitor, err := s.Identity.Sessions.AdmitAnyone(r.Context(), s.client(r), r.Method)
			if err != nil {
				return err
			}
			return answer(w, identity.WithVisitor(r, visitor))
		}
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		principal, err := s.Identity.Sessions.Admit(r.Context(), s.client(r), r.Method)
		if err != nil {
			return err
		}
		if err := principal.Check(need); err != nil {
			return err
		}
		return answer(w, identity.WithPrincipal(r, principal))
	}
}

// authenticate returns the session of a request's cookie and its person, or identity.ErrSignedOut.
func authenticate(r *http.Request) (*account.Session, *account.Account, error) {
	principal, err := identity.SessionOf(r)
	if err != nil {
		return nil, nil, err
	}
	return principal.Session, principal.Person, nil
}

// actingID returns the id of the account that the request's session acts on, if the route needs one.
func actingID(r *http.Request) uuid.UUID { return identity.PrincipalOf(r).Account.ID }

func (s *Server) client(r *http.Request) identity.Client { return identity.ClientOf(r, s.cookie) }

// confirming is the client of a request that confirms its operation by a password, empty for none.
func (s *Server) confirming(r *http.Request, password string) identity.Client {
	client := s.client(r)
	client.Password = password
	return client
}

// writeSignedIn writes the response to a sign-up or sign-in, with the session in the cookie.
func (s *Server) writeSignedIn(w http.ResponseWriter, in *identity.SignedIn) error {
	s.cookie.SignIn(w, in)
	return route.WriteJSON(w, http.StatusOK, signedInJSON{User: newUserJSON(in.Account)})
}

// signedInJSON is the response to sign-up and sign-in. The token is null, because it is in an HttpOnly cookie that scripts cannot
// read.
type signedInJSON struct {
	Redirect bool     `json:"redirect"`
	Token    *string  `json:"token"`
	User     userJSON `json:"user"`
}

// userJSON is an account in better-auth's shape.
type userJSON struct {
	ID            string             `json:"id"`
	Name          string             `json:"name"`
	Email         string             `json:"email"`
	EmailVerified bool               `json:"emailVerified"`
	Image         *string            `json:"image"`
	CreatedAt     transfer.Timestamp `json:"createdAt"`
	UpdatedAt     transfer.Timestamp `json:"updatedAt"`
}

func newUserJSON(a *account.Account) userJSON {
	return userJSON{
		ID: a.ID.String(), Name: a.Name, Email: a.Email, EmailVerified: a.EmailVerified(),
		CreatedAt: transfer.NewTimestamp(a.CreatedAt), UpdatedAt: transfer.NewTimestamp(a.UpdatedAt),
	}
}

// sessionJSON is a session in better-auth's shape. Token repeats the id: it identifies the session to revoke and is not a
// credential.
type sessionJSON struct {
	ID     string `json:"id"`
	Token  string `json:"token"`
	UserID string `json:"userId"`
	// ActiveOrganizationID is the account that the session acts on.
	ActiveOrganizationID string             `json:"activeOrganizationId"`
	IPAddress            string             `json:"ipAddress"`
	UserAgent            string             `json:"userAgent"`
	ExpiresAt            transfer.Timestamp `json:"expiresAt"`
	CreatedAt            transfer.Timestamp `json:"createdAt"`
	UpdatedAt            transfer.Timestamp `json:"updatedAt"`
}

func newSessionJSON(s *account.Session) sessionJSON {
	return sessionJSON{
		ID: s.ID.String(), Token: s.ID.String(), UserID: s.AccountID.String(), ActiveOrganizationID: s.ActingID().String(), IPAddress: s.IPAddress, UserAgent: s.UserAgent,
		ExpiresAt: transfer.NewTimestamp(s.ExpiresAt), CreatedAt: transfer.NewTimestamp(s.CreatedAt), UpdatedAt: transfer.NewTimestamp(s.UpdatedAt),
	}
}

// statusJSON is better-auth's response without content.
var statusJSON = map[string]bool{"status": true}
