package transfer

import (
	"encoding/hex"

	"github.com/google/uuid"
)

// Columns are the names of the columns of a table of intents, in the order of Cells.
var Columns = []string{
	"id", "order_id", "type", "status", "environment", "created_at", "updated_at", "deadline", "reference", "batch_id",
	"source_chain", "source_account", "source_token", "source_amount",
	"destination_chain", "destination_account", "destination_token", "destination_amount", "transaction_hash",
}

// Cells are a summary's cells of Columns. Accounts and tokens are addresses on the chain of their side, and amounts are in the token's smallest unit.
// A cell is empty for what the intent does not have.
func (s *Summary) Cells() []string {
	batch := ""
	if s.BatchID != uuid.Nil {
		batch = s.BatchID.String()
	}
	cells := []string{
		s.ID.String(), "0x" + hex.EncodeToString(s.OrderID[:]), string(s.Type), string(s.Status), string(s.Environment),
		string(NewTimestamp(s.CreatedAt)), string(NewTimestamp(s.UpdatedAt)), string(NewTimestamp(s.Deadline)), s.Reference, batch,
	}
	for _, leg := range []SummaryLeg{s.Source, s.Destination} {
		cells = append(cells, leg.Chain.String(), leg.Account, leg.Token, leg.Amount)
	}
	return append(cells, s.Hash)
}
