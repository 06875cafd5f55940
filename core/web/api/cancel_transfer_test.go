package api_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/store/pgtest"
)

func TestCancelTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := keyed(uuid.New(), "test")
	_, location, _ := s.create(t, transferBody, account...)
	notFound := refused(t, 404, "NOT_FOUND", "The account has no such transfer.")
	same(t, "another account", notFound, s.call(t, "POST", location+"/cancel", "", keyed(uuid.New(), "test")...))
	same(t, "unknown", notFound, s.call(t, "POST", "/v2/transfers/"+uuid.NewString()+"/cancel", "", account...))
	same(t, "query", invalid(t, "now", "is not a known parameter"), s.call(t, "POST", location+"/cancel?now=1", "", account...))
	for range 2 {
		got := s.call(t, "POST", location+"/cancel", "", account...)
		record, _ := got.Body.(map[string]any)
		if got.Status != 200 || record["status"] != "cancelled" || record["final"] != true {
			t.Errorf("cancelled: %+v", got)
		}
	}
	same(t, "a key of the other environment", want(t, 403, `{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","chainId":11155111,"keyEnv":"live",
		"message":"Chain eip155:11155111 is a test chain and this is a live key; use a test key."}`),
		s.call(t, "POST", location+"/cancel", "", keyed(uuid.MustParse(account[1]), "live")...))
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM events WHERE to_status = 'cancelled'`); n != 1 {
		t.Errorf("%d events of one cancelling", n)
	}
	_, location, _ = s.create(t, transferBody, account...)
	pgtest.Exec(t, s.store, `UPDATE transfers SET status = 'submitted', hash = '0x1' WHERE status = 'created'`)
	same(t, "submitted", refused(t, 409, "STATUS_CONFLICT", "The intent's status does not allow this; read it again."),
		s.call(t, "POST", location+"/cancel", "", account...))
}
