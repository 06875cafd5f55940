package api

import (
	"sync/atomic"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// catalog is the encoded registry. Clients poll it, so it is encoded once per snapshot instead of once per request.
type catalog struct {
	snapshot *registry.Snapshot
	chains   page
	tokens   page
	tokensOn map[caip.ChainID]page
	noTokens page
}

// catalogs caches the newest catalog. Two concurrent requests may both encode a new version, which is harmless.
type catalogs struct{ current atomic.Pointer[catalog] }

// of encodes the tokens only if their version has changed. The set of watched chains changes more often.
func (c *catalogs) of(snapshot *registry.Snapshot) (*catalog, error) {
	current := c.current.Load()
	if current != nil && current.snapshot == snapshot {
		return current, nil
	}
	written, err := &catalog{}, error(nil)
	if current != nil && current.snapshot.Version == snapshot.Version {
		*written = *current
	} else if written, err = writeTokens(snapshot); err != nil {
		return nil, err
	}
	written.snapshot = snapshot
	toJSON := func(known registry.Chain) chainJSON { return newChainJSON(known, snapshot.Watched(known.ID)) }
	if written.chains, err = packPage(route.Each(snapshot.Chains, toJSON)); err != nil {
		return nil, err
	}
	c.current.Store(written)
	return written, nil
}

func writeTokens(snapshot *registry.Snapshot) (*catalog, error) {
	c := &catalog{tokensOn: map[caip.ChainID]page{}}
	for _, target := range []struct {
		page  *page
		value any
	}{
		{&c.tokens, route.Each(snapshot.Tokens, newTokenJSON)},
		{&c.noTokens, []tokenJSON{}},
	} {
		var err error
		if *target.page, err = packPage(target.value); err != nil {
			return nil, err
		}
	}
	for _, known := range snapshot.Chains {
		written, err := packPage(route.Each(snapshot.TokensOn(known.ID), newTokenJSON))
		if err != nil {
			return nil, err
		}
		c.tokensOn[known.ID] = written
	}
	return c, nil
}

type tokenJSON struct {
	Symbol   string  `json:"symbol"`
	ChainID  string  `json:"chainId"`
	Address  string  `json:"address"`
	Decimals uint8   `json:"decimals"`
	Metadata *string `json:"metadata"`
	ERC3009  bool    `json:"erc3009"`
	Name     *string `json:"name"`
}

func newTokenJSON(t registry.Token) tokenJSON {
	return tokenJSON{
		Symbol: t.Symbol, ChainID: t.ID.Chain.String(), Address: t.ID.String(), Decimals: t.Decimals,
		Metadata: transfer.Optional(t.Metadata), ERC3009: t.ERC3009 != nil, Name: transfer.Optional(t.Name),
	}
}

type chainJSON struct {
	ChainID        string       `json:"chainId"`
	Name           string       `json:"name"`
	Environment    string       `json:"environment"`
	NativeCurrency currencyJSON `json:"nativeCurrency"`
	// Settlements is never nil, nor is Signing of any, so that they are written as [].
	Settlements []registry.Settlement `json:"settlements"`
	// Confirmations is present even if Finality is a block tag.
	Confirmations uint64            `json:"confirmations"`
	Finality      registry.Finality `json:"finality"`
	Watched       bool              `json:"watched"`
	Explorer      *string           `json:"explorer"`
}

type currencyJSON struct {
	Symbol   string `json:"symbol"`
	Decimals uint8  `json:"decimals"`
}

func newChainJSON(c registry.Chain, watched bool) chainJSON {
	return chainJSON{
		ChainID: c.ID.String(), Name: c.Name, Environment: string(c.Environment),
		NativeCurrency: currencyJSON{Symbol: c.NativeCurrency.Symbol, Decimals: c.NativeCurrency.Decimals},
		Settlements:    route.Each(c.Settlements, withSigning),
		Confirmations:  c.Confirmations, Finality: c.Finality, Watched: watched, Explorer: transfer.Optional(c.Explorer),
	}
}

// withSigning returns a settlement whose Signing is not nil.
func withSigning(s registry.Settlement) registry.Settlement {
	s.Signing = append([]wire.SigningScheme{}, s.Signing...)
	return s
}
