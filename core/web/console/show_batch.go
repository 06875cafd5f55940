package console

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/transfer"
)

// batchView is the page of a batch.
type batchView struct {
	*intents.Batch
	// Statuses are how many of the intents are in each status, without those that none is in.
	Statuses []intents.StatusCount
	Rows     []transferRow
	// Missing is how many intents are no longer kept.
	Missing int
	// Key is nil if it was deleted.
	Key       *account.Key
	Refresh   int
	PublicURL string
}

// showBatch answers GET /console/batches/{id} with the intents of a batch.
func (c *console) showBatch(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	batch, found, err := c.batchOf(r, user)
	if err != nil {
		return err
	}
	key, err := c.Identities.Key(r.Context(), batch.AccountID, batch.KeyID)
	if err != nil && !errors.Is(err, account.ErrNotFound) { // the key may have been deleted
		return err
	}
	shown := batchView{Batch: batch, Key: key, Statuses: intents.CountStatuses(found), Missing: batch.Count - len(found), PublicURL: c.PublicURL}
	for _, intent := range found {
		shown.Rows = append(shown.Rows, c.transferRow(intent))
		if !transfer.Ended(intent.Type, intent.Status) {
			shown.Refresh = batchRefreshSeconds
		}
	}
	title := fmt.Sprintf("Batch of %d transfers", batch.Count)
	if batch.Count == 1 {
		title = "Batch of 1 transfer"
	}
	return c.render(w, r, user, "batch", view{Title: title, Section: "transfers", Of: batch.Environment, Form: f, Body: shown})
}

// batchRefreshSeconds is the interval at which a batch's open page reloads while one of its intents is under way.
const batchRefreshSeconds = 10

// batchOf returns the account's batch that the path identifies, of either environment, with its intents.
func (c *console) batchOf(r *http.Request, user currentUser) (batch *intents.Batch, found []*transfer.Intent, err error) {
	for _, environment := range environments {
		batch, found, err = c.Intents.FindBatch(r.Context(), user.principal.Account.ID, environment, r.PathValue("id"))
		if !errors.Is(err, intents.ErrBatchNotFound) {
			break
		}
	}
	return batch, found, err
}

// batchID returns the id of the batch that the intent was created in, empty for none.
func batchID(intent *transfer.Intent) string {
	if intent.BatchID == uuid.Nil {
		return ""
	}
	return intent.BatchID.String()
}
