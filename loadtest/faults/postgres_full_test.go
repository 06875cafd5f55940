package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// The disk of the database fills up and is freed: writes get 503 meanwhile, reads succeed, nothing is lost, and all succeeds as soon as
// there is room. The write-ahead log keeps the segments it has recycled, so the tables are what cannot grow.
func TestPostgres_DiskFull(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 384<<20)
	db := startDatabase(t, embedded.PostgresConfig{Dir: filepath.Join(dir, "postgres")})
	_, fleet := startServices(t, db)
	w := startWorkload(t, db, fleet, members, reads, keyedWrites, batches)
	l := startLoad(t, fleet, baselineStream)
	w.awaitMore(50)
	recycleLog(t, db)

	began := time.Now()
	ballast := fillDisk(t, dir)
	asynctest.Eventually(t, "a write fails for want of room", func() bool { return len(w.soFar().failed()) > 0 })
	sleep(t, 2*time.Second)
	freed := time.Now()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	recovered := w.awaitSuccess(freed)
	sleep(t, time.Second)
	if untold := w.mustBeUnavailable(newJudge(t, l.stop()), began, recovered, time.Second); untold > 0 {
		t.Errorf("%d intents are stored that no client was told of, although all writes are repeated", untold)
	}
	failed := w.soFar().failed()
	if failedReads := failed.of(reads); len(failedReads) > 0 {
		t.Errorf("%d reads failed:%s", len(failedReads), failedReads.first(5, began))
	}
	if late := failed.between(freed.Add(within(time.Second)), time.Now()); len(late) > 0 {
		t.Errorf("%d requests failed that began a second after there was room:%s", len(late), late.first(3, freed))
	}
}

// recycleLog has Postgres keep segments of its log ready, so that the log can grow on a full disk.
func recycleLog(t *testing.T, db *database) {
	t.Helper()
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		for range 3 {
			if _, err := conn.Exec(ctx, `SELECT pg_switch_wal()`); err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, `CHECKPOINT`); err != nil {
				return err
			}
		}
		return nil
	})
}

// fillDisk takes all room that is left in dir and returns the file that holds it.
func fillDisk(t *testing.T, dir string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zeros := make([]byte, 4096)
	for {
		if _, err := file.Write(zeros); errors.Is(err, io.ErrShortWrite) || errors.Is(err, syscall.ENOSPC) {
			return file.Name()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// smallDisk is a file system of so many bytes until the test ends.
func smallDisk(t *testing.T, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=755", size), "tmpfs", dir).CombinedOutput(); err != nil {
		system.Skip(t, fmt.Sprintf("a small file system needs Linux and root: mount tmpfs: %v: %s", err, out))
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
	return dir
}
