package command

import (
	"context"
	"fmt"
	"log/slog"
	"net/mail"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/rooms"
	"intents.internal/core/screening"
	"intents.internal/pkg/settings"
)

// checkScreening adds the faults of the settings of screening; those of the files end core when it reads them.
func (c Config) checkScreening(f *settings.Faults) {
	paths := c.screeningPaths()
	f.Expect(!slices.Contains(paths, ""), "CORE_SCREENING_FILE", "has an empty path: %q", c.ScreeningFile)
	for n, path := range paths {
		f.Expect(path == "" || !slices.Contains(paths[:n], path), "CORE_SCREENING_FILE", "names %q twice", path)
	}
	if c.ScreeningContact != "" {
		f.Expect(isContact(c.ScreeningContact), "CORE_SCREENING_CONTACT",
			"must be a URL, http or https, or a mail address, of at most 200 characters, not %q", c.ScreeningContact)
	}
	f.Duration("CORE_SCREENING_MAX_AGE", c.ScreeningMaxAge, time.Hour, 8760*time.Hour)
}

func isContact(text string) bool {
	if utf8.RuneCountInString(text) > 200 {
		return false
	}
	if address, err := mail.ParseAddress(text); err == nil {
		return address.Address == text
	}
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && !strings.ContainsAny(text, " \t\r\n")
}

// screeningPaths are the files of CORE_SCREENING_FILE, none without it.
func (c Config) screeningPaths() []string {
	if c.ScreeningFile == "" {
		return nil
	}
	paths := strings.Split(c.ScreeningFile, ",")
	for n := range paths {
		paths[n] = strings.TrimSpace(paths[n])
	}
	return paths
}

// openScreening reads the list of CORE_SCREENING_FILE; without one there is no screening, which is nil.
func openScreening(ctx context.Context, config Config, store *rooms.Rooms, log *slog.Logger, metrics prometheus.Registerer) (*screening.Screen, error) {
	paths := config.screeningPaths()
	if len(paths) == 0 {
		return nil, nil //nolint:nilnil // a nil Screen refuses nobody
	}
	screen, err := screening.Open(ctx, screening.Config{
		Store: store.Screening, Paths: paths, Contact: config.ScreeningContact, MaxAge: config.ScreeningMaxAge, Log: log, Metrics: metrics,
	})
	if err != nil {
		return nil, fmt.Errorf("CORE_SCREENING_FILE: %w", err)
	}
	return screen, nil
}

// startScreening keeps the list as its files are, reads it again on HUP, and writes hits, until ctx ends.
func startScreening(ctx context.Context, group *errgroup.Group, screen *screening.Screen) {
	if screen == nil {
		return
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	group.Go(func() error { defer signal.Stop(again); screen.Follow(ctx, again); return nil })
	group.Go(func() error { screen.RunHits(ctx); return nil })
}
