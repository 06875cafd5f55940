package mail

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/background"
)

const (
	// senders is how many mails one core sends concurrently.
	senders = 2
	// pollEvery bounds the delay of a mail that another core queued or that is due for a retry.
	pollEvery = 5 * time.Second
	// lease is how long one sender may keep a mail. It is longer than composing takes, and sending, which sendTimeout bounds.
	lease = 2 * time.Minute
	// lastWait is how long a mail that is being sent is waited for when core ends: if it were cut off, it could be sent twice.
	lastWait = 5 * time.Second
	// maxAttempts and maxAge bound the retries of one mail.
	maxAttempts = 12
	maxAge      = 4 * time.Hour
	// firstRetry is the first retry's delay, which doubles with each attempt up to lastRetry.
	firstRetry, lastRetry = 10 * time.Second, 10 * time.Minute
)

// Compose returns the message for a row of the outbox, or nil if there is nothing to send.
type Compose func(ctx context.Context, queued *Queued) (*Message, error)

// Composers compose the mails of each kind. Mails of other kinds stay in the outbox, for cores of a later version.
type Composers map[Kind]Compose

// Outbox sends the mails that are queued in the database. Each is sent at least once, unless maxAttempts or maxAge is reached
// first: if a core dies between the server's reply and the deletion of the row, the mail is sent again. Any number of cores may
// run an outbox.
type Outbox struct {
	store   *Store
	smtp    *SMTP
	log     *slog.Logger
	metrics *metrics
	wake    chan struct{}
}

// NewOutbox returns an outbox; Run starts it.
func NewOutbox(store *Store, smtp *SMTP, log *slog.Logger, registry prometheus.Registerer) *Outbox {
	return &Outbox{store: store, smtp: smtp, log: log, metrics: newMetrics(registry), wake: make(chan struct{}, 1)}
}

// Wake makes a sender check for mails immediately. It does not block.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Run sends mails until ctx ends.
func (o *Outbox) Run(ctx context.Context, composers Composers) {
	kinds := slices.Collect(maps.Keys(composers))
	var running sync.WaitGroup
	for range senders {
		running.Go(func() {
			job := background.Job{Name: "send mail", Every: pollEvery, Wake: o.wake, Level: slog.LevelError}
			background.Repeat(ctx, o.log, job, func() (more bool, err error) { return o.sendNext(ctx, kinds, composers) })
		})
	}
	running.Go(func() {
		job := background.Job{Name: "read the backlog of mail", Every: pollEvery, Level: slog.LevelWarn}
		background.Repeat(ctx, o.log, job, func() (more bool, err error) {
			age, err := o.store.BacklogAge(ctx)
			o.metrics.backlog.Set(age.Seconds())
			return false, err
		})
	})
	running.Wait()
}

// sendNext sends the mail that has been due for the longest time and reports whether there was one. It returns only errors that
// would also affect other mails.
func (o *Outbox) sendNext(ctx context.Context, kinds []Kind, composers Composers) (more bool, err error) {
	queued, err := o.store.Lease(ctx, kinds, lease)
	if queued == nil || err != nil {
		return false, err
	}
	if queued.Attempts > maxAttempts || queued.Age > maxAge {
		o.metrics.count("dropped")
		o.log.LogAttrs(ctx, slog.LevelError, "mail given up", slog.String("kind", string(queued.Kind)), slog.Int("attempts", queued.Attempts-1))
		return true, o.store.Delete(ctx, queued.ID)
	}
	message, err := composers[queued.Kind](ctx, queued)
	if err == nil && message == nil {
		o.metrics.count("nothing")
		return true, o.store.Delete(ctx, queued.ID)
	}
	if err == nil {
		err = o.send(ctx, message)
		ctx = context.WithoutCancel(ctx) // a core that shuts down still deletes the row of a sent mail
	}
	if err == nil {
		o.metrics.count("sent")
		return true, o.store.Delete(ctx, queued.ID)
	}
	refused, ofThisMail := errors.AsType[*SendError](err)
	if ofThisMail && refused.Permanent {
		o.metrics.count("refused")
		o.log.LogAttrs(ctx, slog.LevelWarn, "mail refused", slog.String("kind", string(queued.Kind)), slog.Any("error", err))
		return true, o.store.Delete(ctx, queued.ID)
	}
	o.metrics.count("failed")
	pause := retryAfter(queued.Attempts)
	if ofThisMail {
		o.log.LogAttrs(ctx, slog.LevelWarn, "mail put off",
			slog.String("kind", string(queued.Kind)), slog.String("retry_after", pause.String()), slog.Any("error", err))
		return true, o.store.Retry(ctx, queued, pause)
	}
	return false, errors.Join(err, o.store.Retry(ctx, queued, pause))
}

// send sends a message, and for lastWait after ctx has ended.
func (o *Outbox) send(ctx context.Context, message *Message) error {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWait, cancel) })
	defer stop()
	return o.smtp.Send(sending, message)
}

// retryAfter returns the delay after a number of attempts.
func retryAfter(attempts int) time.Duration {
	return min(lastRetry, firstRetry<<min(attempts-1, 10))
}
