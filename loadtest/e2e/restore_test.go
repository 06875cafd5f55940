package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/asynctest"
	"intents.internal/pkg/embedded"
)

// secret is what this test and its services share.
const secret = "the secret that this test shares with core"

// A database is saved, lost and restored by the very commands of deploy/BACKUP.md, which are run by whom the server belongs
// to. Everything that was acknowledged is there again, keys work, a gateway that has known the old database hears of what happens in the
// restored one, and readers of the feed read on from the cursor of before.
func TestRestore(t *testing.T) {
	t.Parallel()
	primary, err := embedded.StartPostgres(t.Context(), embedded.PostgresConfig{Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = primary.Stop() }()
	o := newOperator(t, primary.URL)
	data := t.TempDir()
	slot, receive, backUp, restore := o.blocks[0], o.blocks[1], o.blocks[2], o.blocks[3]
	save, load, dump := o.blocks[4], o.blocks[5], o.blocks[6]

	s, stop := stackOf(t, data, primary.URL)
	me := &client{t: t, base: s.Env().GatewayURL, key: s.Env().TestKey, http: direct}
	o.run(slot)
	receiving := o.start(receive)
	first := intents(me, 10)
	o.run(backUp)
	later := intents(me, 10)
	heard := expect[keyChanges](t, keyChangesAfter(t, s, ""), http.StatusOK)
	cursor := mustRead(me, "", append(first, later...)...)
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
	me.base = s.Env().GatewayURL
	mustHave(t, me, append(first, later...))
	if a := keyChangesAfter(t, s, heard.Cursor); a.Status != http.StatusGone {
		t.Errorf("a gateway that knew the lost database: status %d, want that it must begin again: %s", a.Status, a.Body)
	}
	afterwards := intents(me, 5)
	cursor = mustRead(me, cursor, afterwards...)

	o.withCompose()
	o.run(save)
	cursor = mustRead(me, cursor, intents(me, 1)...) // made after the moment that was saved
	stop()
	o.run(load)
	s, stop = stackOf(t, data, o.restoredURL)
	me.base = s.Env().GatewayURL
	mustHave(t, me, append(append(first, later...), afterwards...))
	more := intents(me, 2)
	cursor = mustRead(me, cursor, more...)
	afterwards = append(afterwards, more...)

	executeOnServer(t, o.restoredURL, `CREATE DATABASE intents_copy`)
	o.environment = append(o.environment, "DATABASE_URL="+o.restoredURL, "COPY_URL="+onDatabase(t, o.restoredURL, "intents_copy"))
	o.run(dump)
	stop()
	s, stop = stackOf(t, data, onDatabase(t, o.restoredURL, "intents_copy"))
	defer stop()
	me.base = s.Env().GatewayURL
	mustHave(t, me, append(append(first, later...), afterwards...))
	tag := me.do(http.MethodGet, "/v2/transfers", nil).Header.Get("ETag")
	if again := me.do(http.MethodGet, "/v2/transfers", nil, "If-None-Match", tag); again.Status != http.StatusNotModified {
		t.Errorf("an unchanged list of the copy: status %d, want 304", again.Status)
	}
	mustRead(me, cursor, intents(me, 1)...)
}

type keyChanges struct{ Cursor string }

// keyChangesAfter asks core as a gateway does.
func keyChangesAfter(t *testing.T, s *stack.Stack, cursor string) answer {
	t.Helper()
	gateway := &client{t: t, base: s.Env().CoreURL, http: direct}
	return gateway.do(http.MethodGet, "/internal/key-changes?wait=1ms&after="+cursor, nil, "X-Gateway-Secret", secret)
}

// direct never goes through a proxy that the environment may name.
var direct = &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}

// stackOf runs the service on a database, with the accounts and keys of its data directory.
func stackOf(t *testing.T, data, databaseURL string) (s *stack.Stack, stop func()) {
	t.Helper()
	var log asynctest.Buffer
	s, err := stack.Start(t.Context(), stack.Config{
		Mail: receiveMail,
		Data: data, Binaries: binaries, Listen: "127.0.0.1:0", InProcessRedis: true, Log: &log, DatabaseURL: databaseURL,
		CoreEnv:    []string{"CORE_GATEWAY_SECRET=" + secret},
		GatewayEnv: []string{"GATEWAY_CORE_SECRET=" + secret, "GATEWAY_LIMIT_BUDGET=2s"},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

// intents makes so many and returns their ids.
func intents(c *client, count int) (ids []string) {
	c.t.Helper()
	for range count {
		made := expect[record](c.t, c.do(http.MethodPost, "/v2/transfers", map[string]any{
			"source":      map[string]any{"account": on(11155111, alice), "token": on(11155111, usdc), "amount": "1"},
			"destination": map[string]any{"account": on(11155111, bob)},
		}), http.StatusCreated)
		ids = append(ids, made.ID)
	}
	return ids
}

// mustHave fails the test unless the account has these intents and no others.
func mustHave(t *testing.T, c *client, ids []string) {
	t.Helper()
	found := map[string]bool{}
	for _, one := range expect[[]record](t, c.do(http.MethodGet, "/v2/transfers", nil), http.StatusOK) {
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

// operator runs the commands of deploy/BACKUP.md.
type operator struct {
	t           *testing.T
	blocks      []string
	restoredURL string
	restoredLog string
	environment []string
	databaseURL string
	credential  *syscall.Credential
}

func newOperator(t *testing.T, databaseURL string) *operator {
	t.Helper()
	page, err := os.ReadFile("../../deploy/BACKUP.md")
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{t: t, databaseURL: databaseURL}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1) {
		o.blocks = append(o.blocks, string(block[1]))
	}
	if len(o.blocks) != 7 {
		t.Fatalf("deploy/BACKUP.md has %d blocks of commands, not 7", len(o.blocks))
	}
	var programs, home string
	queryRow(t, databaseURL, &programs, `SELECT setting FROM pg_config WHERE name = 'BINDIR'`)
	queryRow(t, databaseURL, &home, `SELECT current_setting('data_directory')`)
	for _, name := range []string{"psql", "pg_receivewal", "pg_basebackup", "pg_verifybackup", "pg_dump"} {
		command := exec.CommandContext(t.Context(), filepath.Join(programs, name), "--version")
		if err := command.Run(); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s does not run: %v", name, err)
			}
			t.Skipf("%s does not run: %v; on Debian: apt-get install postgresql", name, err)
		}
	}
	owner, err := os.Stat(home)
	if err != nil {
		t.Fatal(err)
	}
	uid, gid := int(owner.Sys().(*syscall.Stat_t).Uid), int(owner.Sys().(*syscall.Stat_t).Gid)
	dir, err := os.MkdirTemp("", "intents-restore-") //nolint:usetesting // nobody else may look into the test's own directory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, path := range []string{dir, filepath.Join(dir, "backup"), filepath.Join(dir, "backup", "wal"), filepath.Join(dir, "socket")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		o.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	o.restoredURL = "postgres://intents@/intents?host=" + filepath.Join(dir, "socket")
	o.restoredLog = filepath.Join(dir, "restored.log")
	o.environment = append(os.Environ(),
		"PATH="+programs+":"+os.Getenv("PATH"), "HOME="+dir, "LANG=C",
		"DATABASE_URL="+databaseURL, "BACKUP="+filepath.Join(dir, "backup"), "RESTORED="+filepath.Join(dir, "restored"),
		"RESTORED_URL="+o.restoredURL,
	)
	return o
}

// withCompose has docker compose exec -T postgres run its command here, on the restored server; stop and up do nothing.
func (o *operator) withCompose() {
	o.t.Helper()
	programs := filepath.Dir(filepath.Dir(o.restoredLog))
	dir, err := os.MkdirTemp(programs, "intents-docker-")
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	script := `#!/bin/sh
case "$*" in
"compose stop haproxy gateway core" | "compose up --wait") ;;
"compose exec -T postgres "*) shift 4; exec "$@" ;;
*) echo "no such command: docker $*" >&2; exit 1 ;;
esac
`
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755), os.Chmod(dir, 0o755)); err != nil {
		o.t.Fatal(err)
	}
	for i, variable := range o.environment {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			o.environment[i] = "PATH=" + dir + ":" + path
		}
	}
	o.environment = append(o.environment, "PGHOST="+filepath.Join(filepath.Dir(o.restoredLog), "socket"))
}

func (o *operator) command(ctx context.Context, block string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", "-euc", block)
	command.Env, command.Dir = o.environment, "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: o.credential}
	return command
}

func (o *operator) run(block string) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.t.Context()), 2*time.Minute)
	defer cancel()
	if out, err := o.command(ctx, block).CombinedOutput(); err != nil {
		server, _ := os.ReadFile(o.restoredLog)
		o.t.Fatalf("%v\n%s\n%s\n%s", err, block, out, server)
	}
}

// start runs a block until stop, or the server's end.
func (o *operator) start(block string) (stop func()) {
	o.t.Helper()
	var said asynctest.Buffer
	command := o.command(context.WithoutCancel(o.t.Context()), block)
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		o.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	stop = func() {
		_ = command.Process.Signal(syscall.SIGINT)
		<-ended
	}
	o.t.Cleanup(func() {
		stop()
		if o.t.Failed() {
			o.t.Logf("%s said:\n%s", strings.Fields(block)[1], said.String())
		}
	})
	return stop
}

// await waits until a query gives true.
func (o *operator) await(what, sql string) {
	o.t.Helper()
	eventually(o.t, func() error {
		var held bool
		queryRow(o.t, o.databaseURL, &held, "SELECT coalesce(bool_and(held), false) FROM ("+sql+") AS t(held)")
		if !held {
			return fmt.Errorf("not yet: %s", what)
		}
		return nil
	})
}

func executeOnServer(t *testing.T, databaseURL, sql string) {
	t.Helper()
	if err := executeOn(t.Context(), databaseURL, sql); err != nil {
		t.Fatal(err)
	}
}

// onDatabase is the URL of another database of a server.
func onDatabase(t *testing.T, serverURL, name string) string {
	t.Helper()
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
