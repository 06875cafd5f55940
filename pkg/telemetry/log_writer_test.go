package telemetry_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"intents.internal/pkg/telemetry"
)

// logged is what a line of the test's says.
type logged struct {
	Msg   string
	N     int
	Lines int
}

func readLines(t *testing.T, from io.Reader) (lines []logged) {
	t.Helper()
	for all := bufio.NewScanner(from); all.Scan(); {
		var line logged
		if err := json.Unmarshal(all.Bytes(), &line); err != nil {
			t.Errorf("%q: %v", all.Text(), err)
		}
		lines = append(lines, line)
	}
	return lines
}

// Nobody reads until all lines are logged: what fits is written in order, and a line stands for the rest.
func TestLogWriter_StalledReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader, out := io.Pipe()
		w := telemetry.NewLogWriter(out, telemetry.LogWriterOptions{Service: "test", MaxBytes: 10 << 10, Delay: 100 * time.Millisecond})
		log := telemetry.NewLogger(w, "test")
		began := time.Now()
		const lines = 1000
		for n := range lines {
			log.Info("line", "n", n)
			if n == 0 {
				<-time.After(time.Second) // the first is in the batch that stalls
			}
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("who logs waited for %s", waited-time.Second)
		}
		dropped := int(testutil.ToFloat64(w.Dropped("dropped_total")))
		var got []logged
		read := make(chan struct{})
		go func() {
			defer close(read)
			got = readLines(t, reader)
		}()
		synctest.Wait()
		log.Info("line", "n", lines)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		_ = out.Close()
		<-read
		var want []logged
		for n := range lines - dropped {
			want = append(want, logged{Msg: "line", N: n})
		}
		want = append(want, logged{Msg: "log lines were dropped: standard output was not read fast enough", Lines: dropped}, logged{Msg: "line", N: lines})
		if diff := cmp.Diff(want, got); diff != "" || dropped == 0 || dropped > lines-50 {
			t.Errorf("%d of %d lines were dropped (-want +got):\n%s", dropped, lines, diff)
		}
	})
}

func TestLogWriter_CloseOfStalledWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader, out := io.Pipe()
		w := telemetry.NewLogWriter(out, telemetry.LogWriterOptions{Service: "test", MaxBytes: 1 << 10})
		fmt.Fprintln(w, "unread")
		began := time.Now()
		if err := w.Close(); err == nil || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		_ = reader.Close() // which ends the write, so that the line is counted
		synctest.Wait()
		fmt.Fprintln(w, "late")
		if got := testutil.ToFloat64(w.Dropped("dropped_total")); got != 2 {
			t.Errorf("%v lines are counted, want 2", got)
		}
	})
}

// A line waits for others no longer than the delay, and not at all once they fill a batch.
func TestLogWriter_Delay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader, out := io.Pipe()
		w := telemetry.NewLogWriter(out, telemetry.LogWriterOptions{Service: "test", MaxBytes: 1 << 20, Delay: time.Minute})
		read := func() (text string, after time.Duration) {
			began := time.Now()
			batch := make([]byte, 1<<20)
			n, err := reader.Read(batch)
			if err != nil {
				t.Error(err)
			}
			return string(batch[:n]), time.Since(began)
		}
		fmt.Fprintln(w, "one")
		fmt.Fprintln(w, "two")
		if text, after := read(); text != "one\ntwo\n" || after != time.Minute {
			t.Errorf("%q after %s", text, after)
		}
		long := strings.Repeat("x", 40<<10)
		fmt.Fprintln(w, long)
		fmt.Fprintln(w, long)
		if text, after := read(); text != long+"\n"+long+"\n" || after != 0 {
			t.Errorf("%d bytes after %s", len(text), after)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}
