package registry

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

type chainRow struct {
	bun.BaseModel `bun:"table:chains,alias:chains"`

	ID               string              `bun:"id,pk"`
	Name             string              `bun:"name"`
	Environment      network.Environment `bun:"environment"`
	CurrencyName     string              `bun:"currency_name"`
	CurrencySymbol   string              `bun:"currency_symbol"`
	CurrencyDecimals uint8               `bun:"currency_decimals"`
	Settlements      []Settlement        `bun:"settlements,type:jsonb"`
	Confirmations    uint64              `bun:"confirmations"`
	Finality         Finality            `bun:"finality"`
	BlockTimeMS      int64               `bun:"block_time_ms"`
	RPCURLs          []string            `bun:"rpc_urls,array"`
	WrappedNative    string              `bun:"wrapped_native,nullzero"`
	Explorer         string              `bun:"explorer,nullzero"`
	CreatedAt        time.Time           `bun:"created_at"`
	UpdatedAt        time.Time           `bun:"updated_at"`
}

type tokenRow struct {
	bun.BaseModel `bun:"table:tokens,alias:tokens"`

	ChainID   string    `bun:"chain_id,pk"`
	Address   string    `bun:"address,pk"`
	Symbol    string    `bun:"symbol"`
	Name      string    `bun:"name,nullzero"`
	Decimals  uint8     `bun:"decimals"`
	Metadata  string    `bun:"metadata,nullzero"`
	Source    string    `bun:"source,nullzero"`
	License   string    `bun:"license,nullzero"`
	CreatedAt time.Time `bun:"created_at"`
	UpdatedAt time.Time `bun:"updated_at"`

	ERC3009       *ERC3009      `bun:"erc3009,type:jsonb"`
	EIP2612       *EIP712Domain `bun:"eip2612,type:jsonb"`
	FeeOnTransfer bool          `bun:"fee_on_transfer"`
}

// watchedWithin is the maximum age of the last read of a watched chain. It is above the poll interval of an idle chain.
const watchedWithin = 2 * time.Minute

// RegistryVersion returns a number that increases with every change of a chain or a token. The same statement reads which chains
// are watched (their lease is held and they were read recently) and the database's clock.
func (s *Store) RegistryVersion(ctx context.Context) (version int64, watched []caip.ChainID, err error) {
	var now time.Time
	var ids []string
	began := time.Now()
	err = s.db.NewRaw(`SELECT version, clock_timestamp(), ARRAY(SELECT chain_id FROM watched_chains WHERE lease_until > clock_timestamp()
		AND stopped IS NULL AND read_at > clock_timestamp() - ? * interval '1 second') FROM registry_version`, watchedWithin.Seconds()).
		Scan(ctx, &version, &now, pgdialect.Array(&ids))
	if err != nil {
		return 0, nil, fmt.Errorf("read the registry's version: %w", err)
	}
	s.db.SetClock(now, began, time.Now())
	for _, text := range ids {
		id, err := caip.ParseChainID(text)
		if err != nil {
			return 0, nil, fmt.Errorf("read which chains are watched: %w", err)
		}
		watched = append(watched, id)
	}
	return version, watched, nil
}

// Registry reads all chains and tokens, and the contracts of all settlements that the chains ever had, in one snapshot.
func (s *Store) Registry(ctx context.Context) (*Snapshot, error) {
	var version int64
	var chainRows []chainRow
	var tokenRows []tokenRow
	var contracts []struct{ ChainID, Address string }
	oneSnapshot := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	err := s.db.RunInTx(ctx, oneSnapshot, func(ctx context.Context, tx bun.Tx) error {
		if err := tx.NewRaw("SELECT version FROM registry_version").Scan(ctx, &version); err != nil {
			return err
		}
		if err := tx.NewSelect().Model(&chainRows).Scan(ctx); err != nil {
			return err
		}
		if err := tx.NewRaw("SELECT chain_id, address FROM chain_settlers UNION SELECT chain_id, address FROM chain_oracles").Scan(ctx, &contracts); err != nil {
			return err
		}
		return tx.NewSelect().Model(&tokenRows).Scan(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("read the registry: %w", err)
	}
	chains := make([]Chain, len(chainRows))
	for i, row := range chainRows {
		if chains[i], err = row.chain(); err != nil {
			return nil, err
		}
	}
	tokens := make([]Token, len(tokenRows))
	for i, row := range tokenRows {
		id, err := caip.ParseChainID(row.ChainID)
		if err != nil {
			return nil, fmt.Errorf("token %s:%s: %w", row.ChainID, row.Address, err)
		}
		tokens[i] = Token{
			ID:     caip.AccountID{Chain: id, Address: row.Address},
			Symbol: row.Symbol, Name: row.Name, Decimals: row.Decimals, Metadata: row.Metadata,
			ERC3009: row.ERC3009, EIP2612: row.EIP2612, FeeOnTransfer: row.FeeOnTransfer,
			Origin: Origin{Source: row.Source, License: row.License},
		}
	}
	retired := make([]caip.AccountID, len(contracts))
	for i, row := range contracts {
		id, err := caip.ParseChainID(row.ChainID)
		if err != nil {
			return nil, fmt.Errorf("contract %s:%s: %w", row.ChainID, row.Address, err)
		}
		retired[i] = caip.AccountID{Chain: id, Address: row.Address}
	}
	return NewSnapshot(version, chains, tokens, retired...), nil
}

// TokenSource counts the tokens of one origin.
type TokenSource struct {
	Origin
	Tokens int
}

// TokenSources counts the tokens by their origin, the largest first.
func (s *Store) TokenSources(ctx context.Context) (sources []TokenSource, err error) {
	const query = `SELECT coalesce(source, '') AS source, coalesce(license, '') AS license, count(*) AS tokens
		FROM tokens GROUP BY 1, 2 ORDER BY tokens DESC, source, license`
	if err := s.db.NewRaw(query).Scan(ctx, &sources); err != nil {
		return nil, fmt.Errorf("count the tokens of each source: %w", err)
	}
	return sources, nil
}

func (r chainRow) chain() (Chain, error) {
	id, err := caip.ParseChainID(r.ID)
	if err != nil {
		return Chain{}, fmt.Errorf("chain %s: %w", r.ID, err)
	}
	c := Chain{
		ID: id, Name: r.Name, Environment: r.Environment,
		NativeCurrency: Currency{Name: r.CurrencyName, Symbol: r.CurrencySymbol, Decimals: r.CurrencyDecimals},
		Confirmations:  r.Confirmations, Finality: r.Finality, BlockTime: time.Duration(r.BlockTimeMS) * time.Millisecond,
		RPCURLs: r.RPCURLs, WrappedNative: r.WrappedNative, Explorer: r.Explorer,
	}
	if len(r.Settlements) > 0 { // nil for none, as in ReadChainList
		c.Settlements = r.Settlements
	}
	return c, nil
}
