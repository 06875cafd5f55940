package identity

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// The limits of requests to session routes, in addition to those of single operations. A person with many tabs stays far below
// them: an open page of an intent reloads every two seconds.
const (
	// writesPerPerson is the number in ten minutes of what a signed-in person sends other than GET, in all sessions together. It
	// bounds the audit entries that one person can make, and is counted by all cores together.
	writesPerPerson = 600
	// readsPerPerson is the number of a signed-in person's GETs a minute, counted by each core.
	readsPerPerson = 1800
	// requestsPerNetwork is the number of requests a minute without a session from one network, counted by each core: a flood of
	// them must reach neither Postgres nor Redis, which the gateways need.
	requestsPerNetwork = 1200
)

// foundSessions bounds the sessions whose persons each core remembers, about 200 bytes each.
const foundSessions = 1 << 14

// Admit finds the person who sends a request to a session route. A limit is charged before the session is looked up, so that a request
// over it costs no query: the limit of the person whose session this core has found before, else that of the network, which gets its
// token back when the session is found. So a flood from a network does not end the work of those who are signed in there. It returns
// ErrSignedOut or a *LimitedError.
func (s *Sessions) Admit(ctx context.Context, client Client, method string) (*Principal, error) {
	person, known := s.personOf(client.Token)
	if !known {
		return s.admitUnknown(ctx, client, method)
	}
	if err := s.limitPerson(ctx, person, method); err != nil {
		return nil, err
	}
	principal, err := s.Principal(ctx, client.Token)
	if errors.Is(err, ErrSignedOut) { // the session has ended since it was found
		s.found.Remove(account.HashToken(client.Token))
		err = cmp.Or(s.limits.requestsPerNetwork.take(ctx, client.network()), err)
	}
	return principal, err
}

// admitUnknown is Admit for a session that this core has not found before, or for none.
func (s *Sessions) admitUnknown(ctx context.Context, client Client, method string) (*Principal, error) {
	if err := s.limits.requestsPerNetwork.take(ctx, client.network()); err != nil {
		return nil, err
	}
	principal, err := s.Principal(ctx, client.Token)
	if err != nil {
		return nil, err
	}
	s.limits.requestsPerNetwork.refund(ctx, client.network())
	s.remember(client.Token, principal.Person.ID)
	return principal, s.limitPerson(ctx, principal.Person.ID, method)
}

// limitPerson counts a request for a person.
func (s *Sessions) limitPerson(ctx context.Context, person uuid.UUID, method string) error {
	if method == http.MethodGet || method == http.MethodHead {
		return s.limits.readsPerPerson.take(ctx, person.String())
	}
	return s.limits.writesPerPerson.take(ctx, person.String())
}

// personOf returns the person of a session that this core has found. It may have ended since.
func (s *Sessions) personOf(token string) (person uuid.UUID, found bool) {
	if token == "" {
		return uuid.Nil, false
	}
	return s.found.Get(account.HashToken(token))
}

func (s *Sessions) remember(token string, person uuid.UUID) {
	s.found.Add(account.HashToken(token), person)
}

// Visitor is who sends a request to a route that needs no session.
type Visitor struct {
	// Principal is nil for nobody.
	Principal *Principal
	// Err is why there is no Principal: ErrSignedOut, or why the session could not be read.
	Err error
}

// AdmitAnyone is Admit for a route that needs no session. It returns only a *LimitedError, so that such a route works without the
// database if it can.
func (s *Sessions) AdmitAnyone(ctx context.Context, client Client, method string) (Visitor, error) {
	principal, err := s.Admit(ctx, client, method)
	if _, limited := errors.AsType[*LimitedError](err); limited {
		return Visitor{}, err
	}
	return Visitor{principal, err}, nil
}
