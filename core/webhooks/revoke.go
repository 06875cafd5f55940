package webhooks

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// revokeEvery is how often the endpoints with requests in flight are read, to cancel those that must not be made any more.
	revokeEvery = 250 * time.Millisecond
	// loadValid is how long ago an endpoint may have been read when a request to it begins. A process that was paused reads it again.
	loadValid = 2 * time.Second
)

// inFlightRequests are the requests in flight.
type inFlightRequests struct {
	mu  sync.Mutex
	all map[*inFlightRequest]struct{}
}

// inFlightRequest is a request to an endpoint as it was when the request began.
type inFlightRequest struct {
	endpoint *Endpoint
	cancel   context.CancelFunc
}

// begin returns the context of a request to an endpoint. The caller must call end after it.
func (s *inFlightRequests) begin(ctx context.Context, endpoint *Endpoint) (sending context.Context, end func()) {
	sending, cancel := context.WithCancel(ctx)
	one := &inFlightRequest{endpoint, cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[one] = struct{}{}
	return sending, func() {
		s.mu.Lock()
		delete(s.all, one)
		s.mu.Unlock()
		cancel()
	}
}

// list returns the requests in flight.
func (s *inFlightRequests) list() (all []*inFlightRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.all {
		all = append(all, one)
	}
	return all
}

// revoke cancels the requests in flight to endpoints that were deleted or disabled, or whose account was, and those to a URL or
// with a secret that the endpoint no longer has.
func (d *Dispatcher) revoke(ctx context.Context) error {
	all := d.requests.list()
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	unique := map[uuid.UUID]bool{}
	var ids []uuid.UUID
	for _, one := range all {
		if id := one.endpoint.ID; !unique[id] {
			unique[id] = true
			ids = append(ids, id)
		}
	}
	active, err := d.Store.ActiveWebhooks(ctx, ids)
	if err != nil {
		return err
	}
	now := d.Store.Now()
	for _, one := range all {
		if e := active[one.endpoint.ID]; e == nil || d.Sealer.Revoked(one.endpoint, e, now) {
			one.cancel()
		}
	}
	return nil
}
