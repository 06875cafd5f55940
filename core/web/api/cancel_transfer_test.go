package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestCancelTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	webtest.Same(t, "query", webtest.Invalid(t, "now", "is not a known parameter"), s.Call(t, "POST", location+"/cancel?now=1", "", account...))
	got := s.Call(t, "POST", location+"/cancel", "", account...)
	if record, _ := got.Body.(map[string]any); got.Status != 200 || record["status"] != "cancelled" || record["final"] != true {
		t.Errorf("cancelled: %+v", got)
	}
	_, location, _ = s.CreateTransfer(t, webtest.TransferBody, account...)
	pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'submitted', hash = '0x1' WHERE status = 'created'`)
	webtest.Same(t, "submitted", webtest.Conflict(t, "submitted", "The intent's status does not allow this; see details.status and read it again."),
		s.Call(t, "POST", location+"/cancel", "", account...))
}
