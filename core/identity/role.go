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
	// Read reads what the account has.
	Read
	// Develop changes the account's keys, intents and webhooks.
	Develop
	// Manage changes the account's members, or ends it.
	Manage
)

// allowed is what each role may do. Nothing else decides on roles.
var allowed = map[account.Role]map[Need]bool{
	account.RoleOwner:     {Person: true, Read: true, Develop: true, Manage: true},
	account.RoleDeveloper: {Person: true, Read: true, Develop: true},
	account.RoleViewer:    {Person: true, Read: true},
}

// Principal is the person who is signed in, and the account that the session acts on: the person's own or another one.
type Principal struct {
	Session *account.Session
	Person  *account.Account
	Account *account.Account
	// Role is the person's in Account.
	Role account.Role
}

// May reports whether the person's role allows what a route needs.
func (p *Principal) May(need Need) bool { return need == Anyone || allowed[p.Role][need] }

// Check returns ErrRole unless the person's role allows what a route needs.
func (p *Principal) Check(need Need) error {
	if !p.May(need) {
		return ErrRole
	}
	return nil
}

// SeesBrowserOf reports whether the person may see the address and the browser of a member's action: viewers see only their
// own. uuid.Nil is a member who is not known.
func (p *Principal) SeesBrowserOf(member uuid.UUID) bool {
	return p.May(Develop) || member == p.Person.ID
}

// Principal finds the live session of a token, its person and the account that it acts on, or returns ErrSignedOut. It reads the
// role each time, so that a change applies to the next request.
func (s *Sessions) Principal(ctx context.Context, token string) (*Principal, error) {
	session, person, err := s.Get(ctx, token)
	if err != nil {
		return nil, err
	}
	if session.Acting == nil {
		return &Principal{Session: session, Person: person, Account: person, Role: account.RoleOwner}, nil
	}
	return &Principal{Session: session, Person: person, Account: session.Acting.Account, Role: session.Acting.Role}, nil
}

// On returns the same person acting on another account, for one request. It returns account.ErrNotMember, and ErrRole unless the
// role there allows need.
func (s *Sessions) On(ctx context.Context, p *Principal, accountID uuid.UUID, need Need) (*Principal, error) {
	if accountID == p.Account.ID {
		return p, p.Check(need)
	}
	membership, err := s.Store.Membership(ctx, accountID, p.Person.ID)
	if err != nil {
		return nil, err
	}
	on := &Principal{Session: p.Session, Person: p.Person, Account: membership.Account, Role: membership.Role}
	return on, on.Check(need)
}

// principalKey is the key of an *Principal in the context of a request.
type principalKey struct{}

// WithPrincipal returns a request with its *Principal.
func WithPrincipal(r *http.Request, p *Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
}

// visitorKey is the key of the Visitor of a request whose route needs no session.
type visitorKey struct{}

// WithVisitor returns a request to a route that needs no session, with who sends it. What such a route does is not done by that person,
// so ClientOf leaves it out.
func WithVisitor(r *http.Request, v Visitor) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitorKey{}, v))
}

// SessionOf returns the *Principal of WithPrincipal or WithVisitor. It returns the Visitor's error without one, and ErrSignedOut for
// any other request. It makes no query: the session was looked up when the request was admitted.
func SessionOf(r *http.Request) (*Principal, error) {
	if p := PrincipalOf(r); p != nil {
		return p, nil
	}
	if v, ok := r.Context().Value(visitorKey{}).(Visitor); ok {
		return v.Principal, v.Err
	}
	return nil, ErrSignedOut
}

// PrincipalOf returns the *Principal of a request, nil without WithPrincipal.
func PrincipalOf(r *http.Request) *Principal {
	p, _ := r.Context().Value(principalKey{}).(*Principal)
	return p
}
