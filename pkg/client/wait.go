package client

import (
	"context"
	"fmt"
	"time"
)

// WaitOptions is what Wait waits for.
type WaitOptions struct {
	// Until is the wanted status. Empty waits until the intent is final.
	Until TransferStatus
	// OnChange is called with the intent as it is first read, and at each change of its status, also one that a reorganization takes back.
	OnChange func(*Transfer)
}

const (
	firstInterval = time.Second
	maxInterval   = 10 * time.Second
)

// Wait reads an intent until it is final or has the wanted status, and returns it; it may be final without the wanted status. It reads at
// once, after a second, then ever more rarely up to every ten seconds, and again after a second when the status has changed. It ends with an error when the context
// does, with the intent as it was last read. A program with many intents follows them all together: [Events.Follow].
func (s *Transfers) Wait(ctx context.Context, id string, options WaitOptions) (*Transfer, error) {
	var last *Transfer
	for interval := firstInterval; ; interval = min(interval*3/2, maxInterval) {
		transfer, err := s.Get(ctx, id)
		if err != nil {
			return last, err
		}
		if last == nil || transfer.Status != last.Status {
			interval = firstInterval
			if options.OnChange != nil {
				options.OnChange(transfer)
			}
		}
		last = transfer
		if transfer.Final || transfer.Status == options.Until {
			return transfer, nil
		}
		if err := s.c.sleep(ctx, interval); err != nil {
			return last, fmt.Errorf("transfer %s is still %s: %w", id, transfer.Status, err)
		}
	}
}
