package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"intents.internal/pkg/tokenbucket"
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

// requestLimits are the buckets of requests to session routes.
type requestLimits struct {
	writes           limit
	reads, anonymous localLimit
}

func newRequestLimits(l *limiter) (r requestLimits, err error) {
	r.writes = l.limit("session-writes", writesPerPerson, 10*time.Minute)
	if r.reads, err = l.local("session-reads", readsPerPerson, time.Minute); err != nil {
		return r, err
	}
	r.anonymous, err = l.local("session-none", requestsPerNetwork, time.Minute)
	return r, err
}

// localLimit is a limit that this core counts alone, in memory of its own: a flood of subjects evicts no other limit's buckets.
type localLimit struct {
	limit
	memory *memory
}

func (l *limiter) local(name string, n int, period time.Duration) (localLimit, error) {
	memory, err := newMemory()
	if err != nil {
		return localLimit{}, fmt.Errorf("prepare the limit %s: %w", name, err)
	}
	l.metrics.create(name)
	return localLimit{limit{l, name, redis_rate.Limit{Rate: n, Burst: n, Period: period}}, memory}, nil
}

// take takes one token from the subject's bucket, or returns a *LimitedError and takes none.
func (l localLimit) take(subject string) error {
	if wait := l.memory.take(tokenbucket.Bucket{Name: subject, Rule: tokenbucket.Rule(l.rate)}); wait > 0 {
		l.metrics.decisions.WithLabelValues(l.name, "refused").Inc()
		return &LimitedError{RetryAfter: wait}
	}
	l.metrics.decisions.WithLabelValues(l.name, "allowed").Inc()
	return nil
}

// Admit finds the person who sends a request to a session route, and counts the request for the person, or for the network if
// nobody is signed in. It returns ErrSignedOut or a *LimitedError.
func (s *Service) Admit(ctx context.Context, client Client, method string) (*Principal, error) {
	principal, err := s.Principal(ctx, client.Token)
	if errors.Is(err, ErrSignedOut) {
		if limited := s.requests.anonymous.take(client.network()); limited != nil {
			return nil, limited
		}
	}
	if err != nil {
		return nil, err
	}
	person := principal.Person.ID.String()
	if method == http.MethodGet || method == http.MethodHead {
		return principal, s.requests.reads.take(person)
	}
	return principal, s.requests.writes.take(ctx, person)
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
