package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// batch stores intents of an account that were created together.
func (s *site) batch(t *testing.T, owner uuid.UUID, keyID string, environment network.Environment, chains ...string) (*intents.Batch, []*transfer.Intent) {
	t.Helper()
	batch := &intents.Batch{
		ID: uuid.Must(uuid.NewV7()), AccountID: owner, KeyID: uuid.MustParse(keyID), Environment: environment, Count: len(chains),
	}
	drafts := make([]*transfer.Intent, len(chains))
	for n, chain := range chains {
		drafts[n] = s.draft(t, owner, keyID, chain, "inv")
		drafts[n].BatchID = batch.ID
	}
	if inserted, err := s.store.Intents.InsertBatch(t.Context(), batch, uuid.NewString(), drafts); err != nil || !inserted {
		t.Fatal(inserted, err)
	}
	return batch, drafts
}

func TestShowBatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	owner := s.ann(t)
	keyID, _ := ann.makeKey("payroll")
	batch, drafts := s.batch(t, owner.ID, keyID, network.Test, "eip155:11155111", "eip155:84532", "eip155:11155111")
	alone := s.record(t, owner.ID, keyID, "eip155:11155111", "alone")
	hash := "0x" + strings.Repeat("ab", 32)
	if _, err := s.store.Intents.Transition(t.Context(), owner.ID, drafts[1].ID, transfer.Command{Trigger: transfer.Submit, Hash: hash}); err != nil {
		t.Fatal(err)
	}
	path := "/console/batches/" + batch.ID.String()

	page := ann.get(path).is(http.StatusOK, "Batch of 3 transfers", batch.ID.String(), "payroll", "test", "created 2 submitted 1", "/v2/batches/"+batch.ID.String()+"/calls")
	for _, draft := range drafts {
		page.link("/console/transfers/" + draft.ID.String())
	}
	if rows := page.count("tr") - 1; rows != 3 {
		t.Errorf("%d rows", rows)
	}
	if !strings.Contains(page.body, "data-refresh") {
		t.Error("the page of a batch under way does not keep up")
	}

	t.Log("the counts lead to the list, and an intent to its batch")
	filtered := ann.get(page.link("/console/transfers?environment=all&batch="+batch.ID.String()+"&status=created")).is(http.StatusOK, "Clear the filters")
	if rows := filtered.count("tr") - 1; rows != 2 {
		t.Errorf("%d rows of those created", rows)
	}
	all := ann.get("/console/transfers?batch="+batch.ID.String()).is(http.StatusOK, "submitted")
	if rows := all.count("tr") - 1; rows != 3 {
		t.Errorf("%d rows of the batch", rows)
	}
	ann.get("/console/transfers?batch="+uuid.NewString()).is(http.StatusOK, "No transfers match these filters.")
	ann.get("/console/transfers?batch=1").is(http.StatusBadRequest).tied("batch", "This is not the id of a batch.")
	ann.get("/console/transfers/" + drafts[0].ID.String()).link(path)
	if page := ann.get("/console/transfers/" + alone.ID.String()).text(); strings.Contains(page, "Batch") {
		t.Errorf("an intent without a batch has one: %s", page)
	}

	t.Log("the other environment's, and nobody else's")
	live, _ := s.batch(t, owner.ID, keyID, network.Live, "eip155:84532")
	ann.get("/console/batches/"+live.ID.String()).is(http.StatusOK, "Batch of 1 transfer", "live")
	s.signedUp(t, "bob@example.com").get(path).is(http.StatusNotFound, "No such batch")

	t.Log("what has ended, and what is no longer kept")
	pgtest.Exec(t, s.store, "UPDATE transfers SET status = 'expired' WHERE batch_id = $1", batch.ID.String())
	pgtest.Exec(t, s.store, "DELETE FROM transfers WHERE id = $1", drafts[1].ID.String())
	left := ann.get(path).is(http.StatusOK, "expired 2", "1 of the transfers are no longer kept here")
	if strings.Contains(left.body, "data-refresh") {
		t.Error("the page of a batch that has ended goes on asking")
	}
}

// A next page of a batch's list has the filter too.
func TestListTransfers_BatchNextPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("payroll")
	chains := make([]string, 26)
	for n := range chains {
		chains[n] = "eip155:11155111"
	}
	batch, _ := s.batch(t, s.ann(t).ID, keyID, network.Test, chains...)
	next, err := url.Parse(ann.get("/console/transfers?batch=" + batch.ID.String()).link("/console/transfers?after="))
	if err != nil || next.Query().Get("batch") != batch.ID.String() {
		t.Errorf("the next page is %v, %v", next, err)
	}
}
