package polls

import (
	"context"
	"errors"
	"time"

	"intents.internal/gateway/control"
	"intents.internal/pkg/wire"
)

const (
	// wakeWait is how long core may hold a question for accounts with news. It is far below wire.MaxEventAccountsWait, since a
	// core that hangs delays wake-ups by as much.
	wakeWait = time.Second
	// wakeTimeout bounds a question.
	wakeTimeout = wakeWait + time.Second
	// wakeInterval is the least time between two questions: a core that is draining answers at once.
	wakeInterval = 20 * time.Millisecond
	// wakeRetry is the pause after a question that failed.
	wakeRetry = 100 * time.Millisecond
	// pauseAfter is how long core is asked after the last poll: a client that has its events mostly waits for more.
	pauseAfter = 30 * time.Second
	// logEvery is the least time between two log lines about questions that fail.
	logEvery = 5 * time.Second
)

// Run asks core, again and again while there are polls, which accounts have new events, and wakes their polls, until ctx ends.
//
// The position is kept over failures and while there is no poll: the first answer after it names every account that has had events since.
func (p *Polls) Run(ctx context.Context) {
	position, failing := "", false
	var lastPoll time.Time
	for ctx.Err() == nil {
		began := time.Now()
		if p.open() > 0 {
			lastPoll = began
		} else if position != "" && began.Sub(lastPoll) > pauseAfter {
			select {
			case <-ctx.Done():
			case <-p.first:
			}
			continue
		}
		next, err := p.follow(ctx, position)
		if ctx.Err() != nil {
			return
		}
		pause := wakeInterval - time.Since(began)
		if err != nil {
			p.metrics.failures.Inc()
			pause = wakeRetry
		}
		p.logState(ctx, err, failing)
		position, failing = next, err != nil
		if pause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// follow asks once, wakes the polls that have news, and returns the next position.
//
// Without a position it wakes all polls once it has one: what happened before that position is in the answer to a question
// that is asked now, and what happens after it is named later.
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

// logState logs the first failed question of a row, then one every logEvery, and the end of the row.
func (p *Polls) logState(ctx context.Context, err error, failing bool) {
	switch {
	case err != nil:
		if suppressed, due := p.logs.Due(); due {
			p.log.WarnContext(ctx, "wake-ups of long polls interrupted", "error", err, "suppressed", suppressed)
		}
	case failing:
		p.log.InfoContext(ctx, "wake-ups of long polls resumed")
	}
}
