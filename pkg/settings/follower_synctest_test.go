package settings_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/settings"
)

// soon is within what a change of the file may take to count.
const soon = 1100 * time.Millisecond

// followed is a service that follows its file.
type followed struct {
	path     string
	applied  []config
	log      bytes.Buffer
	registry *prometheus.Registry
	again    chan os.Signal
	stop     func()
}

// follow starts it in the bubble.
func follow(t *testing.T, s settings.Source[config]) *followed {
	t.Helper()
	started, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{path: started.Path(), registry: prometheus.NewRegistry(), again: make(chan os.Signal, 1)}
	follower := settings.NewFollower(started, settings.Options[config]{
		Apply:   func(c config) { c.File = ""; f.applied = append(f.applied, c) },
		Again:   f.again,
		Service: "x", Log: slog.New(slog.NewJSONHandler(&f.log, nil)), Metrics: f.registry,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); follower.Run(ctx) }()
	f.stop = func() { cancel(); <-ended }
	return f
}

func (f *followed) metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// lines are what was logged since they were last asked for: level, message and what else was said.
func (f *followed) lines(t *testing.T) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(f.log.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		delete(one, "time")
		delete(one, "file")
		all = append(all, one)
	}
	f.log.Reset()
	return all
}

func TestFollower(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := source(t, "X_SERVER=redis://:old@a/0\n")
		f := follow(t, s)
		defer f.stop()
		base := config{Listen: "here", Limit: "5", Secret: "of the environment", Server: "redis://:old@a/0"}
		for _, c := range []struct {
			what, text string
			applied    []config
			lines      []map[string]any
			success    float64
			pending    float64
		}{
			{what: "nothing new", text: "# the same\nX_SERVER=redis://:old@a/0\n", success: 1},
			{
				what: "a limit", text: "X_LIMIT=6\nX_SERVER=redis://:old@a/0\n", success: 1,
				applied: []config{{"", "here", "6", "of the environment", "redis://:old@a/0"}},
				lines:   []map[string]any{{"level": "INFO", "msg": "settings taken over", "changed": []any{"X_LIMIT"}}},
			},
			{
				what: "a fault", text: "X_LIMIT=6\nX_SECRET=\nX_LIMT=7\n",
				lines: []map[string]any{{
					"level": "ERROR", "msg": "settings refused, those from before still apply",
					"faults": []any{"X_FILE line 3: there is no setting X_LIMT", "X_SECRET is required"},
				}},
			},
			{
				what: "what needs a restart besides", text: "X_SECRET=new\nX_LISTEN=there\nX_SERVER=redis://:new@a/0\n", success: 1, pending: 1,
				applied: []config{{"", "here", "5", "new", "redis://:new@a/0"}},
				lines: []map[string]any{
					{"level": "INFO", "msg": "settings taken over", "changed": []any{"X_LIMIT", "X_SECRET", "X_SERVER"}},
					{"level": "WARN", "msg": "settings that apply after a restart only have changed", "settings": []any{"X_LISTEN"}},
				},
			},
			{
				what: "another server", text: "X_SECRET=new\nX_SERVER=redis://:newer@b/0\n", success: 1, pending: 1,
				lines: []map[string]any{
					{"level": "WARN", "msg": "settings that apply after a restart only have changed", "settings": []any{"X_SERVER"}},
				},
			},
			{
				what: "whoever stands in the query", text: "X_SECRET=new\nX_SERVER=redis://:new@a/0?username=u&password=p\n", success: 1,
				applied: []config{{"", "here", "5", "new", "redis://:new@a/0?username=u&password=p"}},
				lines:   []map[string]any{{"level": "INFO", "msg": "settings taken over", "changed": []any{"X_SERVER"}}},
			},
			{
				what: "more in the query", text: "X_SECRET=new\nX_SERVER=redis://:new@a/0?username=u&password=q&db=1\n", success: 1, pending: 1,
				lines: []map[string]any{
					{"level": "WARN", "msg": "settings that apply after a restart only have changed", "settings": []any{"X_SERVER"}},
				},
			},
			{
				what: "what was there at the start", text: "X_SERVER=redis://:old@a/0\n", success: 1, applied: []config{base},
				lines: []map[string]any{{"level": "INFO", "msg": "settings taken over", "changed": []any{"X_SECRET", "X_SERVER"}}},
			},
		} {
			f.applied = nil
			write(t, f.path, c.text)
			before := f.metric(t, "intents_x_config_reload_timestamp_seconds")
			<-time.After(soon)
			synctest.Wait()
			if diff := cmp.Diff(c.applied, f.applied); diff != "" {
				t.Errorf("%s: applied (-want +got):\n%s", c.what, diff)
			}
			if diff := cmp.Diff(c.lines, f.lines(t)); diff != "" {
				t.Errorf("%s: logged (-want +got):\n%s", c.what, diff)
			}
			if got := f.metric(t, "intents_x_config_reload_success"); got != c.success {
				t.Errorf("%s: success %v", c.what, got)
			}
			if got := f.metric(t, "intents_x_config_restart_pending"); got != c.pending {
				t.Errorf("%s: %v settings wait for a restart", c.what, got)
			}
			if got := f.metric(t, "intents_x_config_reload_timestamp_seconds"); (got > before) != (c.success == 1) {
				t.Errorf("%s: taken over at %v, before that at %v", c.what, got, before)
			}
		}
	})
}

// One fault is told of once, and what is put right counts again.
func TestFileThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, source(t, "-"))
		defer f.stop()
		<-time.After(soon)
		write(t, f.path, "X_LIMIT=6\n") // made later
		<-time.After(soon)
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * soon)
		synctest.Wait()
		want := []map[string]any{
			{"level": "WARN", "msg": "settings file not there yet, settings come from the environment alone"},
			{"level": "INFO", "msg": "settings taken over", "changed": []any{"X_LIMIT"}},
			{
				"level": "ERROR", "msg": "settings refused, those from before still apply",
				"faults": []any{"X_FILE is gone: put it back, or an empty one if there is nothing to set"},
			},
		}
		if diff := cmp.Diff(want, f.lines(t)); diff != "" || len(f.applied) != 1 {
			t.Errorf("applied %+v, logged (-want +got):\n%s", f.applied, diff)
		}
		write(t, f.path, "X_LIMIT=6\n")
		<-time.After(soon)
		synctest.Wait()
		if f.metric(t, "intents_x_config_reload_success") != 1 || len(f.applied) != 1 {
			t.Errorf("after it was put back: %+v", f.applied)
		}
	})
}

// Kubernetes mounts a Secret as a link to a folder that it swaps; names, sizes and times may be the same as before.
func TestSwappedLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, at := t.TempDir(), time.Now()
		for _, version := range []string{"1", "2"} {
			path := filepath.Join(dir, version, "x.env")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, path, "X_LIMIT="+version+"\n")
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(dir, "data")
		if err := os.Symlink("1", link); err != nil {
			t.Fatal(err)
		}
		s := source(t, "-")
		s.Environment["X_FILE"] = filepath.Join(link, "x.env")
		f := follow(t, s)
		defer f.stop()
		if err := os.Symlink("2", link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
		<-time.After(soon)
		synctest.Wait()
		if len(f.applied) != 1 || f.applied[0].Limit != "2" {
			t.Errorf("applied %+v", f.applied)
		}
	})
}

// A file counts once it stays the same; whoever cannot wait sends a signal.
func TestHalfAFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, source(t, "X_LIMIT=6\n"))
		defer f.stop()
		for _, text := range []string{"", "X_", "X_LIMIT=", "X_LIMIT=7"} { // as it is being written, slowly
			write(t, f.path, text)
			<-time.After(soon / 2)
		}
		synctest.Wait()
		if len(f.applied) > 0 {
			t.Errorf("half a file counted: %+v", f.applied)
		}
		f.again <- syscall.SIGHUP
		synctest.Wait()
		if len(f.applied) != 1 || f.applied[0].Limit != "7" {
			t.Errorf("after the signal: %+v", f.applied)
		}
		f.lines(t)
		f.again <- syscall.SIGHUP
		synctest.Wait()
		if diff := cmp.Diff([]map[string]any{{"level": "INFO", "msg": "settings taken over", "changed": nil}}, f.lines(t)); diff != "" {
			t.Errorf("a signal without a change (-want +got):\n%s", diff)
		}
	})
}
