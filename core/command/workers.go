package command

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"intents.internal/core/feed"
	"intents.internal/core/intents"
	"intents.internal/core/quotes"
	"intents.internal/core/retention"
	"intents.internal/core/rooms"
	"intents.internal/pkg/background"
	"intents.internal/pkg/topology"
)

const (
	// expireEvery is the interval between two checks of the intents' deadlines.
	expireEvery = time.Second
	// eraseEvery is the interval between two removals of signatures that nobody needs.
	eraseEvery = time.Minute
	// submissionsEvery is the interval between two looks for orders whose solvers are due to be asked, each once in intents.SubmissionInterval.
	submissionsEvery = 5 * time.Second
	// stateEvery is the age that the state may reach, and stateTimeout keeps its queries from waiting for a connection that requests need.
	stateEvery, stateTimeout = 15 * time.Second, 2 * time.Second
	// pruneEvery is the interval between two removals of expired rows.
	pruneEvery = time.Hour
)

// expire marks the intents whose deadline has passed.
func expire(ctx context.Context, store *intents.Store, log *slog.Logger) {
	background.Repeat(ctx, log, background.Job{Name: "expire transfers", Every: expireEvery, Level: slog.LevelError}, func() (more bool, err error) {
		expired, err := store.ExpireTransfers(ctx)
		return expired > 0, err
	})
}

// eraseSignatures erases the signatures of intents whose deadline is long over.
func eraseSignatures(ctx context.Context, store *intents.Store, log *slog.Logger) {
	background.Repeat(ctx, log, background.Job{Name: "erase signatures", Every: eraseEvery, Level: slog.LevelWarn}, func() (more bool, err error) {
		erased, err := store.EraseSignatures(ctx)
		return erased > 0, err
	})
}

// followSubmissions asks solvers what became of the orders that they were handed.
func followSubmissions(ctx context.Context, service *quotes.Service, log *slog.Logger) {
	job := background.Job{Name: "follow submitted orders", Every: submissionsEvery, Level: slog.LevelWarn}
	var account uuid.UUID // the last one that had its turn
	background.Repeat(ctx, log, job, func() (more bool, err error) {
		account, more, err = service.FollowSubmissions(ctx, account)
		return more, err
	})
}

// writeRefundableEvents writes the events of orders that can be refunded.
func writeRefundableEvents(ctx context.Context, store *intents.Store, log *slog.Logger) {
	background.Repeat(ctx, log, background.Job{Name: "find refundable transfers", Every: expireEvery, Level: slog.LevelError}, func() (more bool, err error) {
		written, err := store.WriteRefundableEvents(ctx)
		return written > 0, err
	})
}

// follow assigns positions in the feed to events and wakes the requests that wait for them.
func follow(ctx context.Context, follower *feed.Follower, log *slog.Logger) {
	background.Repeat(ctx, log, background.Job{Name: "assign positions to events", Every: feed.Interval, Level: slog.LevelError}, func() (more bool, err error) {
		return follower.Follow(ctx)
	})
}

// readState updates the metrics of how late intents expire and events get their position in the feed, and of Postgres and Redis themselves.
func readState(ctx context.Context, store *rooms.Rooms, limits redis.UniversalClient, memory *topology.Memory, log *slog.Logger) {
	background.Repeat(ctx, log, background.Job{Name: "read the state of the database", Every: stateEvery, Level: slog.LevelWarn}, func() (more bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, stateTimeout)
		defer cancel()
		memory.Read(ctx, limits)
		return false, errors.Join(store.Intents.ReadExpiryLag(ctx), store.Feed.ReadLag(ctx), store.ReadServer(ctx))
	})
}

// prune removes the rows that have expired or are older than their retention.
func prune(ctx context.Context, store *retention.Store, keep retention.Retention, log *slog.Logger) {
	background.Repeat(ctx, log, background.Job{Name: "prune", Every: pruneEvery, Level: slog.LevelWarn}, func() (more bool, err error) {
		removed, err := store.Prune(ctx, store.Now(), keep)
		maps.DeleteFunc(removed, func(_ string, rows int64) bool { return rows == 0 })
		if len(removed) > 0 {
			log.Info("pruned", "rows_removed", removed)
		}
		return false, err
	})
}
