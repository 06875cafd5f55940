package e2e_test

import (
	"net/http"
	"net/url"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/embedded"
)

// secret is what this test and its services share.
const secret = "the secret that this test shares with core"

// A database is saved, lost and restored by the very commands of deploy/BACKUP.md, which are run by whom the server belongs
// to. Everything that was acknowledged is there again, keys work, a gateway that has known the old database hears of what happens in the
// restored one, and readers of the feed read on from the cursor of before.
func TestRestore(t *testing.T) {
	journey(t)
	t.Parallel()
	primary := must(embedded.StartPostgres(t.Context(), embedded.PostgresConfig{Ephemeral: true}))(t)
	defer func() { _ = primary.Stop() }()
	o := newOperator(t, primary.URL)
	data := t.TempDir()
	role, slot, receive, backUp, mark, restore := o.blocks[0], o.blocks[1], o.blocks[2], o.blocks[3], o.blocks[4], o.blocks[5]
	save, load, dump := o.blocks[6], o.blocks[7], o.blocks[9] // the eighth needs Docker

	s, stop := stackOf(t, data, primary.URL)
	me := apiClient(t, s.Env().GatewayURL, s.Env().TestKey)
	o.run(role)
	o.run(slot)
	receiving := o.start(receive)
	first := pay(t, me, 10)
	o.run(backUp)
	o.run(mark)
	later := pay(t, me, 10)
	heard := system.Expect[keyChanges](t, keyChangesAfter(t, s, ""), http.StatusOK)
	cursor := mustRead(t, me, "", append(first, later...)...)
	o.await("the log is saved", `SELECT sent_lsn = pg_current_wal_insert_lsn() AND flush_lsn = sent_lsn FROM pg_stat_replication WHERE application_name = 'pg_receivewal'`)
	stop()
	if err := primary.Stop(); err != nil {
		t.Fatal(err)
	}
	receiving()

	// What a server is told on its command line is in no backup.
	o.run(`echo "max_connections = 200
listen_addresses = ''
unix_socket_directories = '${RESTORED%/*}/socket'" >>"$BACKUP/base/postgresql.auto.conf"`)
	o.run(restore)
	defer o.run(`pg_ctl --pgdata="$RESTORED" --mode=immediate stop`)
	s, stop = stackOf(t, data, o.restoredURL)
	me = apiClient(t, s.Env().GatewayURL, s.Env().TestKey)
	mustHave(t, me, append(first, later...))
	if a := keyChangesAfter(t, s, heard.Cursor); a.Status != http.StatusGone {
		t.Errorf("a gateway that knew the lost database: status %d, want that it must begin again: %s", a.Status, a.Body)
	}
	afterwards := pay(t, me, 5)
	cursor = mustRead(t, me, cursor, afterwards...)

	o.withCompose()
	o.run(save)
	cursor = mustRead(t, me, cursor, pay(t, me, 1)...) // made after the moment that was saved
	stop()
	o.run(load)
	s, stop = stackOf(t, data, o.restoredURL)
	me = apiClient(t, s.Env().GatewayURL, s.Env().TestKey)
	mustHave(t, me, append(append(first, later...), afterwards...))
	more := pay(t, me, 2)
	cursor = mustRead(t, me, cursor, more...)
	afterwards = append(afterwards, more...)

	system.Execute(t, o.restoredURL, `CREATE DATABASE intents_copy`)
	o.environment = append(o.environment, "DATABASE_URL="+o.restoredURL, "COPY_URL="+onDatabase(t, o.restoredURL, "intents_copy"))
	o.run(dump)
	stop()
	s, stop = stackOf(t, data, onDatabase(t, o.restoredURL, "intents_copy"))
	defer stop()
	me = apiClient(t, s.Env().GatewayURL, s.Env().TestKey)
	mustHave(t, me, append(append(first, later...), afterwards...))
	raw := rawClient(t, s.Env().GatewayURL, s.Env().TestKey)
	tag := raw.Do(http.MethodGet, "/v2/transfers", nil).Header.Get("ETag")
	if again := raw.Do(http.MethodGet, "/v2/transfers", nil, "If-None-Match", tag); again.Status != http.StatusNotModified {
		t.Errorf("an unchanged list of the copy: status %d, want 304", again.Status)
	}
	mustRead(t, me, cursor, pay(t, me, 1)...)
}

type keyChanges struct{ Cursor string }

// keyChangesAfter asks core as a gateway does.
func keyChangesAfter(t *testing.T, s *stack.Stack, cursor string) system.Answer {
	t.Helper()
	return system.NewClient(t, s.Env().CoreURL, "").Do(http.MethodGet, "/internal/key-changes?wait=1ms&after="+cursor, nil, "X-Gateway-Secret", secret)
}

// stackOf runs the service on a database, with the accounts and keys of its data directory.
func stackOf(t *testing.T, data, databaseURL string) (s *stack.Stack, stop func()) {
	t.Helper()
	s, _ = startStack(t, stack.Config{
		Data: data, InProcessRedis: true, DatabaseURL: databaseURL,
		CoreEnv: []string{"CORE_GATEWAY_SECRET=" + secret}, GatewayEnv: []string{"GATEWAY_CORE_SECRET=" + secret},
	})
	return s, func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// mustHave fails the test unless the account has these intents and no others.
func mustHave(t *testing.T, api *intents.Client, ids []string) {
	t.Helper()
	found := map[string]bool{}
	for one, err := range api.Transfers.All(t.Context(), intents.TransferQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		found[one.ID] = true
	}
	for _, id := range ids {
		if !found[id] {
			t.Errorf("%s is lost", id)
		}
	}
	if len(found) != len(ids) {
		t.Errorf("%d intents, want %d", len(found), len(ids))
	}
}

// onDatabase is the URL of another database of a server.
func onDatabase(t *testing.T, serverURL, name string) string {
	t.Helper()
	u := must(url.Parse(serverURL))(t)
	u.Path = "/" + name
	return u.String()
}
