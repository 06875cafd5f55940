package identity

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// ErrRole means that the person's role in the account does not allow an action.
var ErrRole = errors.New("the role does not allow this")

// Need is what a route requires of the person. The zero value is invalid and rejected.
type Need int

// The needs of routes.
const (
	_ Need = iota
	// Anyone needs no session.
	Anyone
	// Person needs a session, and concerns only the person.
	Person
	// Look reads what the account has.
	Look
	// Develop changes the account's keys, intents and webhooks.
	Develop
	// Manage changes the account's members, or ends it.
	Manage
)

// allowed is what each role may do. Nothing else decides on roles.
var allowed = map[account.Role]map[Need]bool{
	account.RoleOwner:     {Person: true, Look: true, Develop: true, Manage: true},
	account.RoleDeveloper: {Person: true, Look: true, Develop: true},
	account.RoleViewer:    {Person: true, Look: true},
}

// Acting is a person in a browser and the account acted on, the person's own or another one.
type Acting struct {
	Session *account.Session
	Person  *account.Account
	Account *account.Account
	// Role is the person's in Account.
	Role account.Role
}

// May reports whether the person's role allows what a route needs.
func (a *Acting) May(need Need) bool { return need == Anyone || allowed[a.Role][need] }

// Check returns ErrRole unless the person's role allows what a route needs.
func (a *Acting) Check(need Need) error {
	if !a.May(need) {
		return ErrRole
	}
	return nil
}

// SeesBrowserOf reports whether the person may see from which address and with which browser another member acted: viewers see
// their own alone. uuid.Nil is a member who is not known.
func (a *Acting) SeesBrowserOf(member uuid.UUID) bool { return a.May(Develop) || member == a.Person.ID }

// Acting finds the live session of a token, its person and the account that it acts on, or returns ErrSignedOut. It reads the
// role each time, so that a change applies to the next request.
func (s *Service) Acting(ctx context.Context, token string) (*Acting, error) {
	session, person, err := s.Session(ctx, token)
	if err != nil {
		return nil, err
	}
	if session.Acting == nil {
		return &Acting{Session: session, Person: person, Account: person, Role: account.RoleOwner}, nil
	}
	return &Acting{Session: session, Person: person, Account: session.Acting.Account, Role: session.Acting.Role}, nil
}

// On returns the same person acting on another account, for one request. It returns account.ErrNotMember, and ErrRole unless the
// role there allows need.
func (s *Service) On(ctx context.Context, a *Acting, accountID uuid.UUID, need Need) (*Acting, error) {
	if accountID == a.Account.ID {
		return a, a.Check(need)
	}
	membership, err := s.Store.Membership(ctx, accountID, a.Person.ID)
	if err != nil {
		return nil, err
	}
	on := &Acting{Session: a.Session, Person: a.Person, Account: membership.Account, Role: membership.Role}
	return on, on.Check(need)
}

// actingKey is the key of an *Acting in the context of a request.
type actingKey struct{}

// WithActing returns a request with its *Acting.
func WithActing(r *http.Request, a *Acting) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), actingKey{}, a))
}

// sessionKey is the key of the *Acting of a request whose route needs no session.
type sessionKey struct{}

// WithSession returns a request to a route that needs no session, with the *Acting of the one it has, nil for none. What such a
// route does is not done by that person, so VisitorOf leaves it out.
func WithSession(r *http.Request, a *Acting) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, a))
}

// SessionOf returns the *Acting of WithActing or WithSession, nil without one.
func SessionOf(r *http.Request) *Acting {
	if a := ActingOf(r); a != nil {
		return a
	}
	a, _ := r.Context().Value(sessionKey{}).(*Acting)
	return a
}

// ActingOf returns the *Acting of a request, nil without WithActing.
func ActingOf(r *http.Request) *Acting {
	a, _ := r.Context().Value(actingKey{}).(*Acting)
	return a
}
