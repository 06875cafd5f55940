package screening

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"intents.internal/core/screening/list"
)

const (
	// pollEvery is how often the files are looked at.
	pollEvery = 30 * time.Second
	// settledAfter is how long a file must have been left alone before it is read, for a writer that does not replace it at once.
	settledAfter = 2 * time.Second
	// acceptTimeout bounds the question whether a smaller file is accepted.
	acceptTimeout = 5 * time.Second
)

// files are those of the list in force, and what was seen of them.
type files struct {
	mu sync.Mutex
	// entries has the number of each file's entries in the list in force.
	entries map[string]int
	// seen are the files as they were when they were read last, taken or refused.
	seen []os.FileInfo
	// smaller are the contents that were refused because they have too few entries, none if nothing or something else was.
	smaller [][sha256.Size]byte
}

// Follow keeps the list as its files are until ctx ends: it looks at them every 30 seconds, and reads them at once whenever again has an
// element, as after a HUP.
func (s *Screen) Follow(ctx context.Context, again <-chan os.Signal) {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	for {
		var unsettled bool
		select {
		case <-ctx.Done():
			return
		case <-again:
			unsettled = s.Reload(ctx)
		case <-timer.C:
			unsettled = s.Poll(ctx)
		}
		next := pollEvery
		if unsettled {
			next = settledAfter
		}
		timer.Reset(next)
	}
}

// Poll reloads the list if a file has changed, or if the operator has accepted those that were refused as too small. unsettled means that a
// file is being written: look again soon.
func (s *Screen) Poll(ctx context.Context) (unsettled bool) {
	f := &s.files
	f.mu.Lock()
	defer f.mu.Unlock()
	now := stat(s.Paths)
	changed := false
	for n, info := range now {
		if list.Same(info, f.seen[n]) {
			continue
		}
		changed = true
		if info != nil && time.Since(info.ModTime()).Abs() < settledAfter {
			return true
		}
	}
	if !changed && (len(f.smaller) == 0 || s.checkAccepted(ctx, f.smaller) != nil) {
		return false
	}
	return s.reload(ctx, now)
}

// Reload reads the list whether a file has changed or not.
func (s *Screen) Reload(ctx context.Context) (unsettled bool) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.reload(ctx, stat(s.Paths))
}

// reload takes all files or none. seen is what they were before they were read.
func (s *Screen) reload(ctx context.Context, seen []os.FileInfo) (unsettled bool) {
	read, err := list.ReadAll(s.Paths)
	if errors.Is(err, list.ErrChanging) {
		return true
	}
	s.files.seen, s.files.smaller = seen, nil
	if err == nil {
		err = s.checkSmaller(ctx, read)
	}
	if err != nil {
		s.metrics.failed(true)
		s.logFault(ctx, err)
		return false
	}
	s.take(read)
	s.metrics.failed(false)
	s.Log.InfoContext(ctx, "screening list is reloaded", "entries", s.list.Load().Len())
	return false
}

func (s *Screen) logFault(ctx context.Context, err error) {
	attributes := []any{"error", err}
	if fault, ok := errors.AsType[*list.FaultError](err); ok {
		attributes = []any{"path", fault.Path, "line", fault.Line, "error", fault.Reason}
	}
	s.Log.ErrorContext(ctx, "screening list is not reloaded, and the one before stays in force; repair the file, or see deploy/screening.md", attributes...)
}

// take puts the list of files in force, at once for everybody.
func (s *Screen) take(read []*list.File) {
	s.files.entries = map[string]int{}
	for _, f := range read {
		s.files.entries[f.Path] = f.Entries
	}
	s.list.Store(list.New(read))
}

// takeEmpty returns the fault of the first file without an entry, unless the operator has accepted all of them.
func (s *Screen) takeEmpty(ctx context.Context, read []*list.File) error {
	return s.unlessAccepted(ctx, read, func(f *list.File) error { return f.Empty() })
}

// checkSmaller returns the fault of the first file that is empty or has less than half of its entries in force, unless the operator has
// accepted all of them.
func (s *Screen) checkSmaller(ctx context.Context, read []*list.File) error {
	return s.unlessAccepted(ctx, read, func(f *list.File) error {
		if 2*f.Entries < s.files.entries[f.Path] {
			return &list.FaultError{
				Path:   f.Path,
				Reason: "has less than half of the entries that it had: repair it, or let it in with core screening check --accept-smaller",
			}
		}
		return f.Empty()
	})
}

func (s *Screen) unlessAccepted(ctx context.Context, read []*list.File, fault func(*list.File) error) error {
	var first error
	var sums [][sha256.Size]byte
	for _, f := range read {
		if err := fault(f); err != nil {
			sums = append(sums, f.SHA256)
			if first == nil {
				first = err
			}
		}
	}
	if first == nil {
		return nil
	}
	if s.checkAccepted(ctx, sums) == nil {
		return nil
	}
	s.files.smaller = sums
	return first
}

var errNotAccepted = errors.New("the operator has not accepted the files")

// checkAccepted returns an error unless the operator has accepted files with all of these contents.
func (s *Screen) checkAccepted(ctx context.Context, sums [][sha256.Size]byte) error {
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	accepted, err := s.Store.Accepted(ctx, sums...)
	if err == nil && !accepted {
		err = errNotAccepted
	}
	if err != nil && !errors.Is(err, errNotAccepted) {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "accepted screening files cannot be read", slog.Any("error", err))
	}
	return err
}

// stat is what the paths lead to, nil for nothing.
func stat(paths []string) []os.FileInfo {
	all := make([]os.FileInfo, len(paths))
	for n, path := range paths {
		if info, err := os.Stat(path); err == nil {
			all[n] = info
		}
	}
	return all
}
