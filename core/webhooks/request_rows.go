package webhooks

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// webhookRequestLifetime is how long the idempotency key of a new endpoint is stored.
const webhookRequestLifetime = 24 * time.Hour

// CreateRequest is a request with an idempotency key that creates an endpoint.
type CreateRequest struct {
	Key string
	// Fingerprint is a hash of what the request asks for.
	Fingerprint [32]byte
	// Response is the response, sealed, as it has the secret.
	Response []byte
}

// CreateResponse is the response to the first request with an idempotency key.
type CreateResponse struct {
	WebhookID uuid.UUID
	Sealed    []byte
}

// InsertWebhookOnce is InsertWebhook for a request with an idempotency key, which belongs to the account and environment for
// webhookRequestLifetime. If the key was used before, it stores nothing and returns the first response, or ErrKeyReused if that
// request asked for something else. The lock on the account orders concurrent requests. After an OutcomeUnknownError another attempt
// is safe.
func (s *Store) InsertWebhookOnce(
	ctx context.Context, grant access.Grant, e *Endpoint, entry account.AuditEntry, request CreateRequest,
) (first *CreateResponse, err error) {
	if first, err := firstResponse(ctx, s.db, e, request); first != nil || err != nil {
		return first, err
	}
	if err := checkRoom(ctx, s.db, e.AccountID); err != nil {
		return nil, err
	}
	end, err := s.feedEnd(ctx, grant.Turn(e.AccountID))
	if err != nil {
		return nil, err
	}
	err = s.InTx(ctx, grant.Turn(e.AccountID), func(ctx context.Context, tx Tx) (err error) {
		if err := grant.Check(ctx, tx.access, e.AccountID); err != nil {
			return err
		}
		if err := tx.access.LockAccount(ctx, e.AccountID); err != nil {
			return err
		}
		if first, err = firstResponse(ctx, tx.db, e, request); first != nil || err != nil {
			return err
		}
		if err := tx.insertWebhook(ctx, e, end, entry); err != nil {
			return err
		}
		_, err = tx.db.NewRaw(`INSERT INTO webhook_requests (account_id, environment, idempotency_key, fingerprint, webhook_id, response, expires_at)
			VALUES (?0, ?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (account_id, environment, idempotency_key) DO UPDATE SET
			fingerprint = excluded.fingerprint, webhook_id = excluded.webhook_id, response = excluded.response, expires_at = excluded.expires_at`,
			e.AccountID, e.Environment, request.Key, request.Fingerprint[:], e.ID, request.Response, e.CreatedAt.Add(webhookRequestLifetime)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store the idempotency key of webhook %s: %w", e.ID, err)
		}
		return nil
	})
	if postgres.IsOutcomeUnknown(err) {
		err = &postgres.OutcomeUnknownError{Err: err, Repeatable: true}
	}
	return first, err
}

// firstResponse returns the response to an earlier request with the same key, nil if there was none.
func firstResponse(ctx context.Context, db bun.IDB, e *Endpoint, request CreateRequest) (*CreateResponse, error) {
	var row struct {
		Fingerprint []byte
		WebhookID   uuid.UUID
		Response    []byte
	}
	err := db.NewRaw(`SELECT fingerprint, webhook_id, response FROM webhook_requests
		WHERE account_id = ? AND environment = ? AND idempotency_key = ? AND expires_at > ?`,
		e.AccountID, e.Environment, request.Key, e.CreatedAt).Scan(ctx, &row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up the idempotency key of a webhook: %w", err)
	case !bytes.Equal(row.Fingerprint, request.Fingerprint[:]):
		return nil, postgres.ErrKeyReused
	}
	return &CreateResponse{row.WebhookID, row.Response}, nil
}
