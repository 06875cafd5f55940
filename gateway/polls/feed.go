package polls

import (
	"context"
	"errors"
	"time"

	"intents.internal/gateway/control"
	"intents.internal/pkg/background"
	"intents.internal/pkg/wire"
)

const (
	// wakeWait is how long core may hold a request for accounts with new events. It is far below wire.MaxEventAccountsWait,
	// because a core that hangs delays wake-ups by up to this time.
	wakeWait = time.Second
	// wakeTimeout bounds a request.
	wakeTimeout = wakeWait + time.Second
	// wakeInterval is the least interval of the requests: a draining core responds at once.
	wakeInterval = 20 * time.Millisecond
	// wakeRetry is the pause after a failed request.
	wakeRetry = 100 * time.Millisecond
	// pauseAfter is how long requests to core continue after the last poll: a client that has read its events usually polls
	// again.
	pauseAfter = 30 * time.Second
	// logEvery is the minimum time between two log lines about failed requests.
	logEvery = 5 * time.Second
)

// Run requests from core, while there are polls, which accounts have new events, and wakes their polls, until ctx ends.
//
// The position is kept over failures and while there is no poll: the next response names every account that has had events since.
func (p *Polls) Run(ctx context.Context) {
	position, lastPoll := "", time.Time{}
	job := background.Job{Every: wakeInterval, Retry: wakeRetry, Report: p.report}
	background.Repeat(ctx, p.log, job, func() (more bool, err error) {
		if now := time.Now(); p.open() > 0 {
			lastPoll = now
		} else if position != "" && now.Sub(lastPoll) > pauseAfter {
			select {
			case <-ctx.Done():
			case <-p.first:
			}
			return true, nil
		}
		if position, err = p.follow(ctx, position); err != nil && ctx.Err() == nil {
			p.metrics.failures.Inc()
		}
		return false, err
	})
}

// follow makes one request, wakes the polls with new events, and returns the next position.
//
// Without a position it first gets one and then wakes all polls: events before that position are in the response to a poll's next
// request to core, and events after it are reported later.
func (p *Polls) follow(ctx context.Context, position string) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	news, err := p.core.EventAccounts(ctx, position, wakeWait)
	switch {
	case errors.Is(err, control.ErrCursorExpired) && position != "":
		return "", nil
	case err != nil:
		return position, err
	case position == "":
		p.metrics.gaps.Inc()
		p.wakeAll()
	default:
		p.wakeEach(news.Accounts)
	}
	return news.Position, nil
}

func (p *Polls) wakeEach(accounts []wire.EventAccount) {
	for _, account := range accounts {
		p.wake(account.AccountID, account.Environment)
	}
}

// report logs the first of consecutive failures, then one every logEvery, and the recovery.
func (p *Polls) report(ctx context.Context, err error) {
	if err == nil {
		p.log.InfoContext(ctx, "wake-ups of long polls resumed")
	} else if suppressed, due := p.logs.Due(); due {
		p.log.WarnContext(ctx, "wake-ups of long polls interrupted", "error", err, "suppressed", suppressed)
	}
}
