package transfer

import (
	"encoding/hex"
	"strconv"

	"github.com/google/uuid"
)

// Columns are the names of the columns of a table of intents, in the order of Cells.
var Columns = []string{
	"id", "type", "status", "environment", "createdAt", "updatedAt", "deadline", "ended", "reference", "batchId", "labels", "signing", "orderId",
	"sourceChain", "sourceAccount", "sourceToken", "sourceAmount",
	"destinationChain", "destinationAccount", "destinationToken", "destinationAmount", "hash",
}

// Cells are a summary's cells of Columns: what its JSON says, with an empty cell for null and for no labels.
func (s *Summary) Cells() []string {
	batch := ""
	if s.BatchID != uuid.Nil {
		batch = s.BatchID.String()
	}
	cells := []string{
		s.ID.String(), string(s.Type), string(s.Status), string(s.Environment),
		string(NewTimestamp(s.CreatedAt)), string(NewTimestamp(s.UpdatedAt)), string(NewTimestamp(s.Deadline)),
		strconv.FormatBool(Ended(s.Type, s.Status)), s.Reference, batch, string(s.Labels), string(s.Signing), "0x" + hex.EncodeToString(s.OrderID[:]),
	}
	for _, leg := range []SummaryLeg{s.Source, s.Destination} {
		chain := leg.Chain.String()
		cells = append(cells, chain, chain+":"+leg.Account, chain+":"+leg.Token, leg.Amount)
	}
	return append(cells, s.Hash)
}
