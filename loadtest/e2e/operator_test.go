package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

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
	page := must(os.ReadFile("../../deploy/BACKUP.md"))(t)
	o := &operator{t: t, databaseURL: databaseURL}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1) {
		o.blocks = append(o.blocks, string(block[1]))
	}
	if len(o.blocks) != 10 {
		t.Fatalf("deploy/BACKUP.md has %d blocks of commands, not 10", len(o.blocks))
	}
	programs := system.QueryRow[string](t, databaseURL, `SELECT setting FROM pg_config WHERE name = 'BINDIR'`)
	home := system.QueryRow[string](t, databaseURL, `SELECT current_setting('data_directory')`)
	for _, name := range []string{"psql", "pg_receivewal", "pg_basebackup", "pg_verifybackup", "pg_dump"} {
		command := exec.CommandContext(t.Context(), filepath.Join(programs, name), "--version")
		if err := command.Run(); err != nil {
			system.Skip(t, fmt.Sprintf("%s does not run: %v; on Debian: apt-get install postgresql", name, err))
		}
	}
	owner := must(os.Stat(home))(t)
	uid, gid := int(owner.Sys().(*syscall.Stat_t).Uid), int(owner.Sys().(*syscall.Stat_t).Gid)
	dir := must(os.MkdirTemp("", "intents-restore-"))(t) //nolint:usetesting // nobody else may look into the test's own directory
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, path := range []string{dir, filepath.Join(dir, "backup"), filepath.Join(dir, "backup", "wal"), filepath.Join(dir, "socket"), filepath.Join(dir, "metrics")} {
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
		"ADMIN_URL="+databaseURL, "DATABASE_URL="+strings.Replace(databaseURL, "//intents@", "//backup@", 1), "METRICS="+filepath.Join(dir, "metrics"), "BACKUP="+filepath.Join(dir, "backup"), "RESTORED="+filepath.Join(dir, "restored"),
		"RESTORED_URL="+o.restoredURL,
	)
	return o
}

// withCompose has docker compose exec -T postgres run its command here, on the restored server; stop and up do nothing.
func (o *operator) withCompose() {
	o.t.Helper()
	programs := filepath.Dir(filepath.Dir(o.restoredLog))
	dir := must(os.MkdirTemp(programs, "intents-docker-"))(o.t)
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
	asynctest.Succeeds(o.t, func() error {
		if !system.QueryRow[bool](o.t, o.databaseURL, "SELECT coalesce(bool_and(held), false) FROM ("+sql+") AS t(held)") {
			return fmt.Errorf("not yet: %s", what)
		}
		return nil
	})
}
