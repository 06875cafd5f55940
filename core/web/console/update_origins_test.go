package console_test

import (
	"net/http"
	"testing"

	"intents.internal/core/pgtest"
)

func TestUpdateOrigins(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	stored := func() string { return pgtest.LookUp[string](t, s.store, `SELECT origins::text FROM accounts`) }

	ann.post("/console/keys/origins", "origins", "https://app.example.com/pay").is(http.StatusBadRequest, "https://app.example.com/pay").
		alerts("The origins must be origins such as https://app.example.com")
	if got := stored(); got != "{}" {
		t.Errorf("stored are %s", got)
	}
	ann.post("/console/keys/origins", "origins", "https://app.example.com, http://localhost:3000\r\n").leadsTo("/console/keys?done=origins")
	ann.get("/console/keys?done=origins").is(http.StatusOK, "The origins are changed", "http://localhost:3000")
	if got := stored(); got != "{http://localhost:3000,https://app.example.com}" {
		t.Errorf("stored are %s", got)
	}
	ann.get("/console/audit").is(http.StatusOK, "Origins of pages changed", "http://localhost:3000 https://app.example.com")
}
