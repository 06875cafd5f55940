package watch

import (
	"context"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
)

// checkDeposits judges the orders that the window's events show open by the receipts of their transactions, each read once: the event alone is
// no deposit. known are the recorded transactions of the window, which are judged already. An opening whose receipt the provider cannot show
// is followed like a reported attempt that is due: its look-up asks other providers and backs off alone.
func (l *loop) checkDeposits(ctx context.Context, v *view, found []intents.Followed, known map[intents.TransactionKey]intents.Observation) error {
	var openings []intents.Followed
	var places []int
	for n := range found {
		o := &found[n]
		switch old, ok := known[o.Key()]; {
		case o.Role != transfer.RoleOpen:
		case ok && *old.Block == *o.Block && old.State == transfer.Mismatch:
			o.State, o.LogIndex, o.Found = old.State, old.LogIndex, old.Found
		case !ok || *old.Block != *o.Block || old.State != transfer.Mined:
			openings, places = append(openings, *o), append(places, n)
		}
	}
	answers, err := l.receipts(ctx, v, v.provider, openings)
	if err != nil {
		return err
	}
	for n, at := range places {
		o, receipt := &found[at], answers[n].Value
		if receipt == nil || receipt.BlockHash != o.Block.Hash {
			o.State, o.Reported, o.Block, o.LogIndex, o.DueAt = transfer.Pending, true, nil, 0, l.Store.Now()
			continue
		}
		if o.Intent.Judge(&o.Transaction, transfer.Inclusion{Receipt: *receipt}); o.State == transfer.Mismatch {
			l.metrics.openedUnpaid()
			l.log.Error("an order was opened without its deposit", "transfer_id", o.TransferID, "hash", o.Hash.Hex())
		}
	}
	return nil
}
