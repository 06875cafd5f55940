package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
)

// importBatch is how many rows one statement carries.
const importBatch = 500

// importLock is the advisory lock that one import holds. The number is arbitrary.
const importLock = 7_403_118_225

// Imported counts the rows that an import has changed.
type Imported struct {
	Added   int
	Updated int
}

// ImportChains adds and updates chains in one transaction, so that an import that fails changes nothing. Chains that
// the list does not name stay. progress is called with the number of rows handled so far.
func (s *Store) ImportChains(ctx context.Context, entries []ChainEntry, now time.Time, progress func(done int)) (Imported, error) {
	var imported Imported
	err := s.runImport(ctx, func(ctx context.Context, tx bun.Tx) error {
		for i, entry := range entries {
			row := newChainRow(entry.Chain, now)
			if entry.DefaultDepth && entry.KeepBlockTime && !entry.KeepConfirmations {
				var known chainRow
				err := tx.NewSelect().Model(&known).Column("block_time_ms").Where("id = ?", row.ID).Scan(ctx)
				if err != nil && !errors.Is(err, sql.ErrNoRows) {
					return fmt.Errorf("import chain %s: %w", entry.ID, err)
				}
				if err == nil {
					row.Confirmations = entry.Over(Chain{BlockTime: time.Duration(known.BlockTimeMS) * time.Millisecond}).Confirmations
				}
			}
			if err := imported.upsert(ctx, tx.NewInsert().Model(&row), "chains", "(id)", chainColumns(entry)); err != nil {
				return fmt.Errorf("import chain %s: %w", entry.ID, err)
			}
			progress(i + 1)
		}
		return nil
	})
	if err != nil {
		return Imported{}, err
	}
	return imported, nil
}

func newChainRow(c Chain, now time.Time) chainRow {
	row := chainRow{
		ID: c.ID.String(), Name: c.Name, Environment: c.Environment,
		CurrencyName: c.NativeCurrency.Name, CurrencySymbol: c.NativeCurrency.Symbol, CurrencyDecimals: c.NativeCurrency.Decimals,
		Settlements: c.Settlements, Confirmations: c.Confirmations, Finality: c.Finality, BlockTimeMS: c.BlockTime.Milliseconds(), RPCURLs: c.RPCURLs,
		WrappedNative: c.WrappedNative, Explorer: c.Explorer, CreatedAt: now, UpdatedAt: now,
	}
	if row.Settlements == nil {
		row.Settlements = []Settlement{} // [] in the database, not null
	}
	return row
}

// chainColumns are the columns of an existing chain that an import updates.
func chainColumns(entry ChainEntry) []string {
	columns := []string{"name", "environment", "currency_name", "currency_symbol", "currency_decimals"}
	if !entry.KeepSettlements {
		columns = append(columns, "settlements")
	}
	if !entry.KeepConfirmations {
		columns = append(columns, "confirmations")
	}
	if !entry.KeepFinality {
		columns = append(columns, "finality")
	}
	if !entry.KeepBlockTime {
		columns = append(columns, "block_time_ms")
	}
	if !entry.KeepRPCURLs {
		columns = append(columns, "rpc_urls")
	}
	if !entry.KeepWrappedNative {
		columns = append(columns, "wrapped_native")
	}
	if !entry.KeepExplorer {
		columns = append(columns, "explorer")
	}
	return columns
}

// ImportTokens adds and updates tokens in one transaction, so that an import that fails changes nothing. Tokens that
// the list does not name stay. progress is called with the number of rows handled so far.
func (s *Store) ImportTokens(ctx context.Context, tokens []Token, now time.Time, progress func(done int)) (Imported, error) {
	var imported Imported
	columns := []string{"symbol", "name", "decimals", "metadata", "source", "license", "erc3009", "eip2612", "fee_on_transfer"}
	err := s.runImport(ctx, func(ctx context.Context, tx bun.Tx) error {
		done := 0
		for batch := range slices.Chunk(tokens, importBatch) {
			rows := make([]tokenRow, len(batch))
			for i, t := range batch {
				rows[i] = tokenRow{
					ChainID: t.ID.Chain.String(), Address: t.ID.Address, Symbol: t.Symbol, Name: t.Name, Decimals: t.Decimals,
					Metadata: t.Metadata, Source: t.Source, License: t.License, CreatedAt: now, UpdatedAt: now,
					ERC3009: t.ERC3009, EIP2612: t.EIP2612, FeeOnTransfer: t.FeeOnTransfer,
				}
			}
			if err := imported.upsert(ctx, tx.NewInsert().Model(&rows), "tokens", "(chain_id, address)", columns); err != nil {
				return fmt.Errorf("import tokens: %w", err)
			}
			done += len(batch)
			progress(done)
		}
		return nil
	})
	if err != nil {
		return Imported{}, err
	}
	return imported, nil
}

// runImport runs one import at a time. Two imports that lock the same rows in different orders would deadlock.
func (s *Store) runImport(ctx context.Context, work func(context.Context, bun.Tx) error) error {
	return s.db.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx bun.Tx) error {
		if err := s.db.AllowLongLocks(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.NewRaw("SELECT pg_advisory_xact_lock(?)", importLock).Exec(ctx); err != nil {
			return fmt.Errorf("wait for another import: %w", err)
		}
		return work(ctx, tx)
	})
}

// upsert skips unchanged rows, so that updated_at is the time of the last change.
func (n *Imported) upsert(ctx context.Context, insert *bun.InsertQuery, table, key string, columns []string) error {
	insert.On("CONFLICT " + key + " DO UPDATE").Set("updated_at = EXCLUDED.updated_at")
	var current, proposed []any
	for _, column := range columns {
		insert.Set("? = EXCLUDED.?", bun.Ident(column), bun.Ident(column))
		current = append(current, bun.Ident(table+"."+column))
		proposed = append(proposed, bun.Ident("excluded."+column))
	}
	insert.Where("? IS DISTINCT FROM ?", bun.Tuple(current), bun.Tuple(proposed))
	// xmax is 0 in a row version that this statement inserted, and set in one that it replaced.
	var added []bool
	if err := insert.Returning("(xmax = 0)").Scan(ctx, &added); err != nil {
		return err
	}
	for _, isNew := range added {
		if isNew {
			n.Added++
		} else {
			n.Updated++
		}
	}
	return nil
}
