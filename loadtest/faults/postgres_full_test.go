package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// The disk of the database fills up and is freed: writes get 503 meanwhile, reads go on, nothing is lost, and all is well as
// soon as there is room. The write-ahead log keeps the segments it has recycled, so the tables are what cannot grow.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 384<<20)
	db := startDatabase(t, embedded.PostgresConfig{Dir: filepath.Join(dir, "postgres")})
	_, fleet := startServices(t, db)
	c := newWorkloadOn(t, db, fleet, reads, keyedWrites)
	c.retries = true
	control := startLoad(t, fleet, controlStream)
	c.set(members)
	pass(t, time.Second)
	recycleLog(t, db)

	struck := time.Now()
	ballast := fillDisk(t, dir)
	asynctest.Eventually(t, "a write fails for want of room", func() bool { return len(c.soFar().failed()) > 0 })
	pass(t, 2*time.Second)
	freed := time.Now()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	recovered := c.untilAllSucceed(t, freed)
	pass(t, time.Second)
	all := c.stop()
	j := newJudge(t, control.stop())

	failed := all.failed()
	untold := c.mustHaveKept(t)
	outcomes.tell(t, outcome{
		Fault: "disk of the database full", Gateways: 1, Requests: len(all.hitBy(struck)), Errors: len(failed),
		OverAdmission: -1, AddedP99: -1, Recovery: recovered,
		Note: fmt.Sprintf("slowest 503 after %s; %d of %d reads failed; %d intents kept once, %d made that nobody was told of",
			millis(failed.slowest()), len(failed.of(reads)), len(all.hitBy(struck).of(reads)), len(c.acknowledged), untold),
	})
	failed.mustBeUnavailable(t, struck)
	if failedReads := failed.of(reads); len(failedReads) > 0 {
		t.Errorf("%d reads failed:%s", len(failedReads), failedReads.first(5, struck))
	}
	if late := failed.from(freed.Add(within(time.Second))); len(late) > 0 {
		t.Errorf("%d requests failed that began a second after there was room:%s", len(late), late.first(3, freed))
	}
	if untold > 0 {
		t.Errorf("%d intents are stored that nobody was told of, although all writes are repeated", untold)
	}
	if recovered > within(time.Second) {
		j.late("all went well again only after %s", recovered)
	}
	all.mustBeSound(t)
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
		if _, err := file.Write(zeros); errors.Is(err, io.ErrShortWrite) || errors.Is(err, errNoSpace) {
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
	err := errors.ErrUnsupported
	if runtime.GOOS == "linux" {
		err = mountTmpfs(dir, size)
	}
	if err != nil {
		message := fmt.Sprintf("a small file system needs Linux and root: mount tmpfs: %v", err)
		if os.Getenv("CI") == "true" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}
