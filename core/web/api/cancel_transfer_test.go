package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
)

func TestCancelTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := keyed(uuid.New(), "test")
	_, location, _ := s.create(t, transferBody, account...)
	same(t, "query", invalid(t, "now", "is not a known parameter"), s.call(t, "POST", location+"/cancel?now=1", "", account...))
	got := s.call(t, "POST", location+"/cancel", "", account...)
	if record, _ := got.Body.(map[string]any); got.Status != 200 || record["status"] != "cancelled" || record["final"] != true {
		t.Errorf("cancelled: %+v", got)
	}
	_, location, _ = s.create(t, transferBody, account...)
	pgtest.Exec(t, s.store, `UPDATE transfers SET status = 'submitted', hash = '0x1' WHERE status = 'created'`)
	same(t, "submitted", conflict(t, "submitted", "The intent's status does not allow this; see details.status and read it again."),
		s.call(t, "POST", location+"/cancel", "", account...))
}
