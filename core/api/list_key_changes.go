package api

import (
	"net/http"
	"time"

	"intents.internal/pkg/wire"
)

const (
	// longestWait bounds a long poll: gateways distrust their verdicts when none has come back for a second.
	longestWait = 500 * time.Millisecond
	// changePoll is how often the database is asked meanwhile.
	changePoll = 100 * time.Millisecond
)

// listKeyChanges answers the gateways' long poll GET /internal/key-changes?after=&wait=: at once if a key changed since
// the cursor, otherwise when one does or the wait is over.
func (s *Server) listKeyChanges(w http.ResponseWriter, r *http.Request) error {
	parameters, err := query(r, "after", "wait")
	if err != nil {
		return err
	}
	wait := longestWait
	if given, ok := parameters["wait"]; ok {
		if wait, err = time.ParseDuration(given); err != nil || wait < 0 || wait > longestWait {
			return invalid(wire.Issue{Path: "wait", Message: "must be a duration up to 500ms"})
		}
	}
	deadline := time.Now().Add(wait)
	after := parameters["after"]
	for {
		hashes, next, err := s.Store.KeyChanges(r.Context(), after, time.Now())
		if err != nil {
			return err
		}
		left := time.Until(deadline)
		if len(hashes) > 0 || after == "" || left <= 0 {
			if hashes == nil {
				hashes = []string{}
			}
			return writeJSON(w, http.StatusOK, wire.KeyChanges{Cursor: next, Hashes: hashes})
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-time.After(min(left, changePoll)):
		}
	}
}
