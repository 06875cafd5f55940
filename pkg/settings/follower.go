package settings

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// lookEvery is how often the file is looked at. It counts once two looks in a row have shown the same, so that one which is
// just being written is not taken for whole.
const lookEvery = 500 * time.Millisecond

// Options are what a Follower needs besides the settings; all must be set unless said otherwise.
type Options[C any] struct {
	// Apply has the service work by these settings from now on. They are valid, and differ from those before in nothing but
	// what may change. It is called by Run alone, never twice at once.
	Apply func(C)
	// Again has the settings read at once, whatever it delivers: SIGHUP. Nil for never.
	Again <-chan os.Signal
	// Service begins the names of the metrics.
	Service string
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Follower keeps a running service to its settings.
type Follower[C any] struct {
	Options[C]
	source  Source[C]
	running C
	// judged is the file that was last taken over, or refused; there says that it ever was there.
	judged file
	there  bool

	success, taken, waiting prometheus.Gauge
}

// NewFollower follows on from the settings that the service was started with. It does nothing before Run.
func NewFollower[C any](started Reading[C], o Options[C]) *Follower[C] {
	factory := promauto.With(o.Metrics)
	gauge := func(name, help string) prometheus.Gauge {
		return factory.NewGauge(prometheus.GaugeOpts{Name: "intents_" + o.Service + "_config_" + name, Help: help})
	}
	f := &Follower[C]{
		Options: o, source: started.source, running: started.Config, judged: started.file, there: started.Found(),
		success: gauge("reload_success", "1 while the settings that were read last apply, 0 where they were refused for a fault. "+
			"0 means that those from before apply still, and that the service would not start again."),
		taken: gauge("reload_timestamp_seconds", "When settings were last read without a fault, in Unix seconds."),
		waiting: gauge("restart_pending", "Settings that have been changed and apply after a restart only. "+
			"Above 0, the service works by others than its file says."),
	}
	f.success.Set(1)
	f.taken.SetToCurrentTime()
	return f
}

// Run takes changes over until ctx ends.
func (f *Follower[C]) Run(ctx context.Context) {
	var looks <-chan time.Time
	if f.source.path() != "" {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		looks = ticker.C
		if !f.there {
			f.Log.WarnContext(ctx, "settings file not there yet, settings come from the environment alone", "file", f.source.path())
		}
	}
	for before := f.judged; ; {
		select {
		case <-ctx.Done():
			return
		case <-f.Again:
			before = f.source.look()
			f.judge(ctx, before, true)
		case <-looks:
			now := f.source.look()
			if now == before && now != f.judged {
				f.judge(ctx, now, false)
			}
			before = now
		}
	}
}

// judge takes the settings over, or refuses all of them. asked says that somebody waits to hear of it.
func (f *Follower[C]) judge(ctx context.Context, now file, asked bool) {
	f.judged = now
	fresh, err := f.source.parse(now)
	if now.absent && f.there {
		err = errors.New(f.source.Variable + " is gone: put it back, or an empty one if there is nothing to set")
	}
	if err != nil {
		f.success.Set(0)
		f.Log.ErrorContext(ctx, "settings refused, those from before still apply",
			"file", f.source.path(), "faults", strings.Split(err.Error(), "\n"))
		return
	}
	f.there = !now.absent
	next, changed, pending := merge(f.running, fresh)
	if len(changed) > 0 {
		f.Apply(next)
		f.running = next
	}
	f.success.Set(1)
	f.taken.SetToCurrentTime()
	f.waiting.Set(float64(len(pending)))
	if len(changed) > 0 || asked {
		f.Log.InfoContext(ctx, "settings taken over", "file", f.source.path(), "changed", changed)
	}
	if len(pending) > 0 {
		f.Log.WarnContext(ctx, "settings that apply after a restart only have changed", "file", f.source.path(), "settings", pending)
	}
}
