package auth_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/auth"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/asynctest"
)

// Once a network is over its limit, a request with a cookie that belongs to nobody asks nothing of the database, whatever its route. Those
// who are signed in from that network go on.
func TestSessionRoutes_UnknownSession(t *testing.T) {
	t.Parallel()
	store, statements := pgtest.New(t), &pgtest.Statements{}
	pgtest.Watch(store, statements)
	s := webtest.StartOn(t, store)
	const network = "198.51.100.7"
	ann := append(s.SignUp(t, "ann@example.com"), "X-Forwarded-For", network)
	stranger := []string{"Cookie", "intents.session=" + strings.Repeat("A", 43), "X-Forwarded-For", network}
	status := func(method, path string, header ...string) int {
		response := s.Send(t, method, path, "", header...)
		webtest.ReadAll(t, response)
		return response.StatusCode
	}
	asynctest.AtOnce(16, func() bool {
		return status(http.MethodGet, "/auth/get-session", stranger...) == http.StatusTooManyRequests
	})
	for range 3 {
		if got := status(http.MethodGet, "/auth/list-sessions", ann...); got != http.StatusOK {
			t.Errorf("who is signed in there gets %d", got)
		}
	}
	var patterns []string
	for _, r := range auth.New(auth.Config{}).Routes() {
		patterns = append(patterns, r.Pattern)
	}
	if len(patterns) < 40 {
		t.Fatalf("only %d routes", len(patterns))
	}
	for _, pattern := range patterns {
		method, path, _ := strings.Cut(pattern, " ")
		webtest.MustRefuseUnread(t, pattern, statements, func() bool {
			return status(method, path+"?id="+uuid.NewString(), stranger...) == http.StatusTooManyRequests
		})
	}
}
