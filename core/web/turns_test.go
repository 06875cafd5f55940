package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
)

// waiting is part of the message of a change that is refused because others of its account wait.
const waiting = "wait for each other"

// impatient are the limits of core, save that it waits longer for a busy machine.
var impatient = postgres.Options{LockTimeout: 250 * time.Millisecond, StatementTimeout: time.Minute, AcquireTimeout: 5 * time.Second, ConnectTimeout: 10 * time.Second}

// atOnce sends a request n times at once and returns how often each status was the answer.
func atOnce(t *testing.T, s *webtest.Service, n int, method, path, body string, header ...string) map[int]int {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := map[int]int{}
	for range n {
		all.Go(func() {
			response := s.Send(t, method, path, body, header...)
			text := webtest.ReadAll(t, response)
			mu.Lock()
			defer mu.Unlock()
			statuses[response.StatusCode]++
			if response.StatusCode == http.StatusTooManyRequests && (!strings.Contains(text, waiting) || response.Header.Get("Retry-After") != "1") {
				t.Errorf("%s %s is refused for another reason: %s", method, path, text)
			}
		})
	}
	all.Wait()
	return statuses
}

// While an account's row is locked, its 150 connections that create webhooks keep at most one of core's: what others send is answered.
func TestTurns_StrangersGoOn(t *testing.T) {
	t.Parallel()
	s := webtest.StartOn(t, pgtest.OpenWith(t, pgtest.Database(t), impatient), webtest.WithWebhooks(t))
	owner, key := s.NewOwner(t)
	_, stranger := s.NewOwner(t)
	blocker := pgtest.Lock(t, s.Store, "SELECT FROM accounts WHERE id = $1 FOR UPDATE", owner)
	done, began := make(chan map[int]int, 1), time.Now()
	go func() { done <- atOnce(t, s, 150, "POST", "/v2/webhooks", webtest.HookBody, key...) }()
	var statuses map[int]int
	for n := 0; statuses == nil; n++ {
		for _, request := range []struct {
			method, path, body string
			status             int
		}{
			{"GET", "/v2/transfers?limit=1", "", http.StatusOK},
			{"POST", "/v2/transfers", webtest.TransferBody, http.StatusCreated},
		} {
			if got := s.Call(t, request.method, request.path, request.body, stranger...).Status; got != request.status {
				t.Errorf("a stranger's %s %s is %d", request.method, request.path, got)
			}
		}
		select {
		case statuses = <-done:
		case <-time.After(10 * time.Millisecond):
		}
	}
	// One after the other has the turn, and gives it up when the lock is not granted in time.
	turns := 1 + int(time.Since(began)/impatient.LockTimeout)
	if late := strings.Count(s.Log.String(), "due to lock timeout"); late > turns {
		t.Errorf("%d requests of the account waited for the lock, %d can have had the turn", late, turns)
	}
	if statuses[http.StatusTooManyRequests]+statuses[http.StatusServiceUnavailable] != 150 { // a busy machine does not come to all in time
		t.Errorf("the account's own requests: %v", statuses)
	}
	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}
	s.CreateWebhook(t, key)
}

// Every route that locks a row of an account waits for it without a connection: of many requests at once at most a few reach the
// database, and the others are refused.
func TestTurns_EveryRoute(t *testing.T) {
	t.Parallel()
	s := webtest.StartOn(t, pgtest.OpenWith(t, pgtest.Database(t), impatient), webtest.WithWebhooks(t))
	owner, key := s.NewOwner(t)
	hook := "/v2/webhooks/" + s.CreateWebhook(t, key)
	_, transfer, _ := s.CreateTransfer(t, webtest.TransferBody, key...)
	ann := s.SignUp(t, "ann@example.com")
	s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci"}`, ann...)
	keyID := pgtest.LookUp[uuid.UUID](t, s.Store, "SELECT id FROM api_keys").String()
	person := pgtest.LookUp[uuid.UUID](t, s.Store, "SELECT id FROM accounts WHERE email = 'ann@example.com'")
	locks := []string{
		fmt.Sprintf("SELECT FROM accounts WHERE id IN ('%s', '%s') FOR UPDATE", owner, person),
		"SELECT FROM webhooks FOR UPDATE", "SELECT FROM transfers FOR UPDATE", "SELECT FROM api_keys FOR UPDATE", "SELECT FROM sessions FOR UPDATE",
	}
	blocker := pgtest.Lock(t, s.Store, locks[0])
	for _, lock := range locks[1:] {
		if _, err := blocker.ExecContext(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
	}
	for _, request := range []struct {
		method, path, body string
		header             []string
	}{
		{"POST", "/v2/webhooks", webtest.HookBody, key},
		{"POST", "/v2/webhooks", webtest.HookBody, append(slices.Clip(key), "Idempotency-Key", "hook-1")},
		{"PATCH", hook, `{"description":"Books"}`, key},
		{"POST", hook + "/rotate-secret", `{}`, key},
		{"POST", hook + "/replay", `{"after":"` + feed.FormatCursor(feed.Owner{AccountID: owner, Environment: network.Test}, 0) + `"}`, key},
		{"DELETE", hook, "", key},
		{"POST", transfer + "/cancel", "", key},
		{"POST", transfer + "/simulate", `{"status":"submitted"}`, key},
		{"POST", transfer + "/transaction", webtest.ReportBody, key},
		{"POST", "/auth/api-key/create", `{"name":"another"}`, ann},
		{"POST", "/auth/api-key/update", `{"keyId":"` + keyID + `","name":"renamed"}`, ann},
		{"POST", "/auth/api-key/rotate", `{"keyId":"` + keyID + `"}`, ann},
		{"POST", "/auth/api-key/delete", `{"keyId":"` + keyID + `"}`, ann},
		{"POST", "/auth/organization/create", `{"name":"Shop","slug":"shop"}`, ann},
		{"POST", "/auth/revoke-sessions", `{}`, ann},
		{"POST", "/auth/change-password", `{"currentPassword":"` + webtest.Password + `","newPassword":"another horse battery"}`, ann},
		{"POST", "/auth/delete-user", `{"password":"` + webtest.Password + `"}`, ann},
	} {
		statuses := atOnce(t, s, 40, request.method, request.path, request.body, request.header...)
		if statuses[http.StatusTooManyRequests] < 20 || statuses[http.StatusTooManyRequests]+statuses[http.StatusServiceUnavailable] != 40 {
			t.Errorf("%s %s: %v", request.method, request.path, statuses)
		}
	}
}
