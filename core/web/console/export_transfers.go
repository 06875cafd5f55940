package console

import (
	"math/big"
	"net/http"
	"slices"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// transfersCSVPath is the path of the file of the list.
const transfersCSVPath = "/console/transfers.csv"

// exportTransfers answers GET /console/transfers.csv with the intents of the query's filters, newest first, as a file. Where there are more than fit,
// or than can be looked through, its last line says so.
func (c *console) exportTransfers(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	filter, err := f.transferFilter(user.environment)
	if err != nil {
		return err
	}
	if !f.ok() {
		return c.listTransfers(w, r, user, f)
	}
	// Amounts in whole tokens follow the columns that every table of intents has.
	file := newCSVFile(slices.Concat(transfer.Columns, []string{"source", "destination"}))
	more := false
	for range maxCSVRows / csvBatch {
		filter.Limit = csvBatch
		var page []transfer.Summary
		var next *intents.KeysetCursor
		if page, next, err = c.Transfers.SummaryPage(r.Context(), user.principal.Account.ID, filter); err != nil {
			return err
		}
		for n := range page {
			file.add(append(page[n].Cells(), c.summaryAmount(page[n].Source), c.summaryAmount(page[n].Destination))...)
		}
		filter.After = next
		if more = next != nil; !more {
			break
		}
	}
	if more {
		file.add("older transfers are left out: choose an earlier last day to have them")
	}
	file.serve(w, "transfers.csv")
	return nil
}

func (c *console) summaryAmount(leg transfer.SummaryLeg) string {
	units, ok := new(big.Int).SetString(leg.Amount, 10)
	if !ok {
		return ""
	}
	return c.amountOf(units, caip.AccountID{Chain: leg.Chain, Address: leg.Token})
}
