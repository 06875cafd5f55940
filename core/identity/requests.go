package identity

import (
	"context"
	"errors"
	"net/http"
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
	// them must not reach Redis, which the gateways need.
	requestsPerNetwork = 1200
)

// Admit finds the person who sends a request to a session route, and counts the request for the person, or for the network if
// nobody is signed in. It returns ErrSignedOut or a *LimitedError.
func (s *Service) Admit(ctx context.Context, client Client, method string) (*Principal, error) {
	principal, err := s.Principal(ctx, client.Token)
	if errors.Is(err, ErrSignedOut) {
		if limited := s.limits.requestsPerNetwork.take(ctx, client.network()); limited != nil {
			return nil, limited
		}
	}
	if err != nil {
		return nil, err
	}
	person := principal.Person.ID.String()
	if method == http.MethodGet || method == http.MethodHead {
		return principal, s.limits.readsPerPerson.take(ctx, person)
	}
	return principal, s.limits.writesPerPerson.take(ctx, person)
}

// AdmitAnyone is Admit for a route that needs no session. It returns nil for nobody, and if the session could not be read, so that
// such a route works without the database if it can.
func (s *Service) AdmitAnyone(ctx context.Context, client Client, method string) (*Principal, error) {
	principal, err := s.Admit(ctx, client, method)
	if _, limited := errors.AsType[*LimitedError](err); limited {
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilerr // the route itself reports what it needs
	}
	return principal, nil
}
