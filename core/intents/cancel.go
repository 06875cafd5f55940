package intents

import (
	"context"
	"errors"

	"intents.internal/core/transfer"
)

// Cancel cancels an intent and returns it changed. It is idempotent, so that a client may repeat a request whose response was lost.
// An error that wraps transfer.ErrTransition means that the intent is no longer created.
func (s *Service) Cancel(ctx context.Context, intent *transfer.Intent) (*transfer.Intent, error) {
	cancelled, err := s.Store.Transition(ctx, intent.AccountID, intent.ID, transfer.Command{Trigger: transfer.Cancel})
	switch {
	case !errors.Is(err, transfer.ErrTransition):
		return cancelled, err
	case cancelled.Status == transfer.Cancelled:
		return cancelled, nil
	default:
		return cancelled, &StatusError{cancelled.Status, err}
	}
}
