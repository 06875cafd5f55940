package gateways_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/wire"
)

func listAccounts(t *testing.T, s *webtest.Service, query string) (news wire.EventAccounts) {
	t.Helper()
	response := s.Send(t, http.MethodGet, wire.PathEventAccounts+query, "")
	text := webtest.ReadAll(t, response)
	if err := json.Unmarshal([]byte(text), &news); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", query, response.StatusCode, text, err)
	}
	return news
}

func TestListEventAccounts(t *testing.T) {
	t.Parallel()
	var follower *feed.Follower
	s := webtest.Start(t, func(c *webtest.Settings) { follower = c.API.Feed })
	ann, bob := uuid.New(), uuid.New()
	pgtest.Exec(t, s.Store, `UPDATE feed_state SET last_position = 1000`)
	s.Call(t, "POST", "/v2/transfers", webtest.TransferBody, webtest.Keyed(ann, "test")...)
	present := listAccounts(t, s, "")
	if len(present.Accounts) != 0 || present.Position == "0" {
		t.Errorf("present: %+v", present)
	}
	if quiet := listAccounts(t, s, "?wait=10ms&after="+present.Position); len(quiet.Accounts) != 0 || quiet.Position != present.Position {
		t.Errorf("nothing since: %+v", quiet)
	}
	// Several events of an account are one piece of news, and who waits hears of it at once.
	heard := make(chan wire.EventAccounts, 1)
	go func() { heard <- listAccounts(t, s, "?wait=5s&after="+present.Position) }()
	for _, owner := range []uuid.UUID{ann, bob, ann} {
		s.Call(t, "POST", "/v2/transfers", webtest.TransferBody, webtest.Keyed(owner, "test")...)
	}
	follow(t, follower)
	<-heard
	news := listAccounts(t, s, "?wait=5s&after="+present.Position)
	want := []wire.EventAccount{{AccountID: ann.String(), Environment: "test"}, {AccountID: bob.String(), Environment: "test"}}
	if diff := cmp.Diff(want, news.Accounts); diff != "" || news.Position <= present.Position {
		t.Errorf("%s (-want +got):\n%s", news.Position, diff)
	}
	webtest.Same(t, "before what is known", webtest.Refused(t, 410, "CURSOR_EXPIRED", "The position is too old; start again without one."),
		s.Call(t, "GET", wire.PathEventAccounts+"?after=999", ""))
	for query, issues := range map[string][]string{
		"after=":            {"after", "must be a position"},
		"after=-1":          {"after", "must be a position"},
		"after=x":           {"after", "must be a position"},
		"after=1&wait=6s":   {"wait", "must be a duration up to 5s"},
		"after=1&wait=-1s":  {"wait", "must be a duration up to 5s"},
		"after=1&wait=long": {"wait", "must be a duration up to 5s"},
		"limit=1":           {"limit", "is not a known parameter"},
	} {
		webtest.Same(t, query, webtest.Invalid(t, issues...), s.Call(t, "GET", wire.PathEventAccounts+"?"+query, ""))
	}
}

// follow has the follower learn of everything that is committed.
func follow(t *testing.T, follower *feed.Follower) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = follower.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A core that drains lets nobody wait.
func TestListEventAccounts_Drain(t *testing.T) {
	t.Parallel()
	var follower *feed.Follower
	s := webtest.Start(t, func(c *webtest.Settings) { follower = c.API.Feed })
	present := listAccounts(t, s, "")
	began := time.Now()
	heard := make(chan webtest.Answer, 1)
	go func() { heard <- s.Call(t, "GET", wire.PathEventAccounts+"?after="+present.Position, "") }()
	follower.Drain()
	follower.Drain()
	drained := webtest.Refused(t, 503, "SERVICE_UNAVAILABLE", "This core is shutting down; ask another.", "Retry-After", "1")
	if got := <-heard; got.Status != http.StatusServiceUnavailable { // it was waiting already
		webtest.Same(t, "who waits", webtest.Want(t, 200, fmt.Sprintf(`{"position":%q,"accounts":[]}`, present.Position)), got)
	}
	if waited := time.Since(began); waited > 4*time.Second {
		t.Errorf("it took %s", waited)
	}
	webtest.Same(t, "who comes later", drained, s.Call(t, "GET", wire.PathEventAccounts+"?after="+present.Position, ""))
	if log := s.Log.String(); log != "" {
		t.Errorf("an orderly end is logged:\n%s", log)
	}
}
