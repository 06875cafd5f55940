package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
)

// getTransfer answers GET /v2/transfers/{id} with the full record; id is the intent's UUID or its order id. Another account's
// intent gets the same response as one that does not exist.
func (s *Server) getTransfer(w http.ResponseWriter, r *http.Request) error {
	_, intent, err := s.requestedTransfer(r)
	if err != nil {
		return err
	}
	return s.writeIntent(w, r, intent)
}

// requestedTransfer returns the caller and the caller's intent that the path identifies.
func (s *Server) requestedTransfer(r *http.Request) (by transfer.Caller, intent *transfer.Intent, err error) {
	if by, err = caller(r); err != nil {
		return by, nil, err
	}
	if _, err = query(r); err != nil {
		return by, nil, err
	}
	intent, err = s.findTransfer(r.Context(), by.AccountID, r.PathValue("id"))
	return by, intent, err
}

// writeIntent writes the current record.
func (s *Server) writeIntent(w http.ResponseWriter, r *http.Request, intent *transfer.Intent) error {
	history, err := s.Store.TransferHistory(r.Context(), intent)
	if err != nil {
		return err
	}
	now := s.Store.Now()
	record, err := newRecord(intent, now)
	if err != nil {
		return err
	}
	record.transactions = intent.Shown(history)
	record.refundable = intent.Refundable(history)
	record.unverifiable = history.Unverifiable()
	if source, known := s.Registry.Current().Chain(intent.Source.Account.Chain); known {
		record.confirmations = history.Confirmations(source.Confirmations)
	}
	record.write(w, http.StatusOK)
	return nil
}

func (s *Server) findTransfer(ctx context.Context, accountID uuid.UUID, name string) (*transfer.Intent, error) {
	if orderID, ok := transfer.ParseHash(name); ok {
		return s.Store.TransferByOrder(ctx, accountID, orderID)
	}
	id, err := uuid.Parse(name)
	if err != nil || len(name) != 36 { // Parse accepts other spellings too
		return nil, postgres.ErrTransferNotFound
	}
	return s.Store.Transfer(ctx, accountID, id)
}
