package intents

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/uuid"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/pkg/caip"
)

// SignedTurn is a place among the signed transfers of a chain. The zero value is before all.
type SignedTurn struct {
	// Account is the last account of the page before.
	Account uuid.UUID
	// After are the last transfers that were read of accounts that have more.
	After map[uuid.UUID]uuid.UUID
}

// maxSignedTurns bounds the accounts whose places are remembered. Those beyond it begin again.
const maxSignedTurns = 10_000

// signedTransfers are the transfers of a chain that were signed and are not executed; it is the condition of their index.
const signedTransfers = "signature IS NOT NULL AND type = 'transfer' AND status IN ('created', 'submitted', 'failed', 'expired')"

// SignedTransfers reads transfers of a chain that were signed and are not executed, as long as their signatures are kept, up to limit of them. Each
// account has the same share, and its transfers and the accounts take turns. next is the turn of the next page.
func (s *Store) SignedTransfers(ctx context.Context, chain caip.ChainID, turn SignedTurn, limit int) (page []Followed, next SignedTurn, err error) {
	var accounts []uuid.UUID
	read := func(after, until uuid.UUID) error {
		var some []uuid.UUID
		err := s.db.NewRaw(`SELECT DISTINCT account_id FROM transfers WHERE source_chain = ? AND account_id > ? AND account_id <= ? AND `+signedTransfers+`
			ORDER BY account_id LIMIT ?`, chain.String(), after, until, limit-len(accounts)).Scan(ctx, &some)
		accounts = append(accounts, some...)
		return err
	}
	if err = read(turn.Account, uuid.Max); err == nil && len(accounts) < limit {
		err = read(uuid.Nil, turn.Account)
	}
	if err != nil {
		return nil, turn, fmt.Errorf("read the accounts of signed transfers on %s: %w", chain, err)
	}
	if len(accounts) == 0 {
		return nil, SignedTurn{}, nil
	}
	share := limit / len(accounts)
	ids, afters := make([]string, len(accounts)), make([]string, len(accounts))
	for n, account := range accounts {
		ids[n], afters[n] = account.String(), turn.After[account].String()
	}
	var rows []TransferRow
	err = s.db.NewSelect().Model(&rows).ModelTableExpr(`(SELECT signed.* FROM unnest(?::uuid[], ?::uuid[]) AS turn (account_id, after)
		CROSS JOIN LATERAL (SELECT * FROM transfers WHERE source_chain = ? AND account_id = turn.account_id AND id > turn.after AND `+signedTransfers+`
			ORDER BY id LIMIT ?) AS signed) AS transfers`, pgdialect.Array(ids), pgdialect.Array(afters), chain.String(), share+1).Scan(ctx)
	if err != nil {
		return nil, turn, fmt.Errorf("read the signed transfers on %s: %w", chain, err)
	}
	next = SignedTurn{Account: accounts[len(accounts)-1], After: maps.Clone(turn.After)}
	if len(next.After) > maxSignedTurns || next.After == nil {
		next.After = map[uuid.UUID]uuid.UUID{}
	}
	for _, account := range accounts {
		delete(next.After, account)
	}
	has := map[uuid.UUID]int{}
	for _, intent := range readEach(s, rows, TransferRow.Intent) {
		if has[intent.AccountID]++; has[intent.AccountID] > share { // there are more
			next.After[intent.AccountID] = page[len(page)-1].TransferID
			continue
		}
		page = append(page, Followed{Observation{AccountID: intent.AccountID, TransferID: intent.ID}, intent})
	}
	return page, next, nil
}
