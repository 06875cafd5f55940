package route

import (
	"context"
	"net/http"

	"intents.internal/core/postgres"
)

// confirm waits until what a response tells is durable, and reports whether it may be written.
//
// The client may repeat a write whose outcome it does not know, and take the answer for the outcome: a record, a redirect, or that there is
// nothing (404, 410), nothing left to do (409), or one of the errors that are apierror.Error.Repeated. The rows that this answer comes from
// may be those of a commit in doubt, which a failover loses, see postgres.DB.Confirm. Routes that only read show them.
func (r *statusRecorder) confirm(status int) bool {
	x := r.exchange
	if r.committed || !r.tellsOutcome(status) || !x.writes() {
		return true
	}
	ctx, cancel := context.WithDeadline(x.Request.Context(), x.started.Add(Timeout))
	defer cancel()
	err := x.router.Confirm(ctx)
	if err == nil {
		return true
	}
	repeatable := x.route.Idempotent && x.Request.Header.Get("Idempotency-Key") != ""
	r.unconfirmed = &postgres.OutcomeUnknownError{Err: err, Repeatable: repeatable}
	header := r.Header()
	for name := range header {
		if name != "Strict-Transport-Security" {
			delete(header, name) // a cookie and a location are of the response that is dropped
		}
	}
	return false
}

// Unconfirmed is why the response was dropped, nil if it was not. The console answers with a page of its own.
func (r *statusRecorder) Unconfirmed() error { return r.unconfirmed }

// Committed says that a response tells of nothing but a commit that has returned.
func Committed(w http.ResponseWriter) {
	if recorder, ok := w.(*statusRecorder); ok {
		recorder.committed = true
	}
}

// Repeated says that the response is an error that a former try of the same write may have caused, see apierror.Error.
func (r *statusRecorder) Repeated() { r.repeated = true }

// tellsOutcome reports whether a client can take a status for the outcome of a write. The other refusals are decided by the request, and
// errors of the service tell nothing.
func (r *statusRecorder) tellsOutcome(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusConflict, http.StatusGone:
		return true
	}
	return status < http.StatusBadRequest || r.repeated && status < http.StatusInternalServerError
}

// writes reports whether a request's route writes.
func (x *Exchange) writes() bool {
	switch x.Request.Method {
	case http.MethodGet, http.MethodHead:
		return x.route.Writes
	}
	return !x.route.ReadOnly
}
