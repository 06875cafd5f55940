package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// WaitOptions is what Wait waits for.
type WaitOptions struct {
	// Until is the wanted status. Empty waits until the intent has ended.
	Until TransferStatus
	// Timeout bounds the wait, by default DefaultWaitTimeout. Negative is no bound but the context's.
	Timeout time.Duration
	// OnChange is called with the intent as it is first read, and at each change of its status, also one that a reorganization takes back.
	OnChange func(*Transfer)
}

// DefaultWaitTimeout is the usual deadline of an intent, an hour, and as long again for what follows.
const DefaultWaitTimeout = 2 * time.Hour

const (
	// firstInterval and maxInterval are between two reads of an intent while the feed cannot be followed, liveInterval while it is.
	firstInterval = time.Second
	maxInterval   = 10 * time.Second
	liveInterval  = time.Minute
)

// Wait reads an intent until it has ended or has the wanted status, and returns it; it may end without the wanted status. All waits of a client
// follow the feed of events together and read their intents when these change; while the feed cannot be read, each reads after a second,
// then ever more rarely up to every ten seconds. Failures that pass, such as a 503 or a lost connection, do not end it, and a 429 delays it by
// Retry-After. It ends with an error when the context does, or after the timeout with one that is context.DeadlineExceeded, both with the intent
// as it was last read. An order that nobody fills does not end: it is confirmed and Refundable.
func (s *Transfers) Wait(ctx context.Context, id string, options WaitOptions) (*Transfer, error) {
	if timeout := cmp.Or(options.Timeout, DefaultWaitTimeout); timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the wait has taken %s: %w", timeout, context.DeadlineExceeded))
		defer cancel()
	}
	w := s.c.feed.join(id)
	defer s.c.feed.leave(w)
	var last *Transfer
	for interval := firstInterval; ; interval = min(interval*3/2, maxInterval) {
		woken, cancel := s.c.feed.woken(ctx, w)
		transfer, err := s.Get(ctx, id)
		if err == nil {
			if last == nil || transfer.Status != last.Status {
				interval = firstInterval
				if options.OnChange != nil {
					options.OnChange(transfer)
				}
			}
			last = transfer
			if transfer.Ended || transfer.Final || transfer.Status == options.Until {
				cancel()
				return transfer, nil
			}
		}
		err = s.c.pauseWait(ctx, woken, err, interval)
		cancel()
		if err != nil {
			return last, waitError(id, last, err)
		}
	}
}

// pauseWait pauses a wait after it has read its intent, or after a failure, which it returns unless that passes. The context's end is returned as
// its cause.
func (c *Client) pauseWait(ctx, woken context.Context, err error, interval time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failure, ok := errors.AsType[*Error](err); err != nil && (!ok || !failure.passes()) {
		return err
	} else if ok {
		return c.sleep(ctx, max(failure.RetryAfter, interval)) // an event would be no reason to ask sooner
	}
	if c.feed.start(ctx) {
		interval = liveInterval
	}
	if err := c.sleep(woken, interval); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// waitError says how far the intent was when its wait ended. An error of the service says enough.
func waitError(id string, last *Transfer, err error) error {
	if _, ok := errors.AsType[*Error](err); ok || last == nil {
		return err
	}
	return fmt.Errorf("transfer %s is still %s: %w", id, last.Status, err)
}
