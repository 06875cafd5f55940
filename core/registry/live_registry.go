package registry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"intents.internal/pkg/background"
)

// registryPoll is how often the registry's version, the watched chains and the database's clock are read. A change is visible
// everywhere within a second, of which gateways take 400 ms.
const registryPoll = 250 * time.Millisecond

// refreshTimeout bounds one reading.
const refreshTimeout = 5 * time.Second

// LiveRegistry holds the newest snapshot of the registry in memory.
type LiveRegistry struct {
	store   *Store
	current atomic.Pointer[Snapshot]
	// requireWatched is set before Run.
	requireWatched bool
}

// NewLiveRegistry reads the registry for the first time.
func NewLiveRegistry(ctx context.Context, store *Store) (*LiveRegistry, error) {
	live := &LiveRegistry{store: store}
	if err := live.Refresh(ctx); err != nil {
		return nil, err
	}
	return live, nil
}

// RequireWatched makes chains that are not watched take no new intents. It must be called before Run.
func (l *LiveRegistry) RequireWatched(ctx context.Context) error {
	l.requireWatched = true
	return l.Refresh(ctx)
}

// Current is the newest snapshot.
func (l *LiveRegistry) Current() *Snapshot { return l.current.Load() }

// Refresh reads the registry if its version has changed, and which chains are watched. If that fails, the snapshot is unchanged.
func (l *LiveRegistry) Refresh(ctx context.Context) error {
	version, watched, err := l.store.RegistryVersion(ctx)
	if err != nil {
		return err
	}
	snapshot := l.current.Load()
	if snapshot == nil || snapshot.Version != version {
		if snapshot, err = l.store.Registry(ctx); err != nil {
			return err
		}
	}
	l.current.Store(snapshot.WithWatched(watched, l.requireWatched))
	return nil
}

// Run refreshes until ctx ends. While that fails, the snapshot stays.
func (l *LiveRegistry) Run(ctx context.Context, log *slog.Logger) {
	background.Repeat(ctx, log, background.Job{Name: "refresh the registry", Every: registryPoll, Level: slog.LevelWarn}, func() (more bool, err error) {
		attempt, cancel := context.WithTimeout(ctx, refreshTimeout)
		defer cancel()
		return false, l.Refresh(attempt)
	})
}
