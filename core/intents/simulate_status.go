package intents

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
)

// Simulate takes an intent of the test environment to a status without any transaction, step by step, and returns it changed: each step has its
// event. It is idempotent: the status that the intent has changes nothing. It returns transfer.ErrNotTest, or a *StatusError of transfer.ErrSent or
// transfer.ErrTransition. The grant is that of the caller to the account.
func (s *Service) Simulate(
	ctx context.Context, grant access.Grant, intent *transfer.Intent, to transfer.Status,
) (*transfer.Intent, error) {
	simulated, err := s.Store.Simulate(ctx, grant, intent.AccountID, intent.ID, to)
	if errors.Is(err, transfer.ErrSent) || errors.Is(err, transfer.ErrTransition) {
		return nil, &StatusError{simulated.Status, err}
	}
	if err != nil {
		return nil, err
	}
	return simulated, nil
}

// Simulate applies the commands of transfer.Intent.Simulate to one of an account's intents and writes the change and its events in one transaction.
// It returns ErrTransferNotFound, or the error of those commands with the unchanged intent.
func (s *Store) Simulate(
	ctx context.Context, grant access.Grant, accountID, id uuid.UUID, to transfer.Status,
) (intent *transfer.Intent, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	err = s.InTx(ctx, grant.Turn(id), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, access.Within(tx.db), accountID); err != nil {
			return err
		}
		if intent, err = tx.LockTransfer(ctx, accountID, id); err != nil {
			return err
		}
		return tx.simulate(ctx, intent, to)
	})
	return intent, err
}

// simulate writes the steps of a locked intent to a status.
func (tx Tx) simulate(ctx context.Context, intent *transfer.Intent, to transfer.Status) error {
	loaded, err := tx.loadTransactions(ctx, []TransferKey{keyOf(intent)})
	if err != nil {
		return err
	}
	commands, err := intent.Simulate(to, len(loaded[keyOf(intent)]))
	if err != nil || len(commands) == 0 {
		return err
	}
	now, err := tx.Now(ctx)
	if err != nil {
		return err
	}
	events := make([]transfer.Event, len(commands))
	for n, command := range commands {
		if events[n], err = intent.Apply(command, now); err != nil {
			return err
		}
	}
	return tx.SaveTransitions(ctx, []*transfer.Intent{intent}, events)
}
