package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"intents.internal/pkg/caip"
)

// List is what a token list holds for this registry: the definitions that keep the rules and the rows that do not.
type List struct {
	Name    string
	Tokens  []Definition
	Refused []Refusal
}

// Refusal is a row that was left out and why.
type Refusal struct {
	// Row counts from 0 in the file's order.
	Row    int
	Name   string
	Reason string
}

type row struct {
	ChainID  uint64 `json:"chainId"`
	Address  string `json:"address"`
	Symbol   string `json:"symbol"`
	Decimals *uint8 `json:"decimals"`
	LogoURI  string `json:"logoURI"`
}

// ReadList reads a token list in the Uniswap Token Lists JSON schema (https://tokenlists.org). Only rows on the chains
// that known says yes to are taken: a token without a chain could not be used. A row that breaks a rule is refused
// alone; an error means that the file as a whole could not be read.
func ReadList(r io.Reader, known func(caip.ChainID) bool) (List, error) {
	var file struct {
		Name   string            `json:"name"`
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return List{}, fmt.Errorf("read the token list: %w", err)
	}
	if len(file.Tokens) == 0 {
		return List{}, errors.New(`read the token list: it has no "tokens"`)
	}
	list := List{Name: file.Name}
	seen := map[caip.AccountID]bool{}
	for i, raw := range file.Tokens {
		definition, name, err := parse(raw, known)
		if err == nil && seen[definition.ID] {
			err = fmt.Errorf("token %s stands earlier in the same list", definition.ID)
		}
		if err != nil {
			list.Refused = append(list.Refused, Refusal{Row: i, Name: name, Reason: err.Error()})
			continue
		}
		seen[definition.ID] = true
		list.Tokens = append(list.Tokens, definition)
	}
	return list, nil
}

func parse(raw json.RawMessage, known func(caip.ChainID) bool) (definition Definition, name string, err error) {
	var r row
	if err := json.Unmarshal(raw, &r); err != nil {
		return Definition{}, "", fmt.Errorf("not a token: %w", err)
	}
	name = r.Symbol
	chain := caip.EIP155Chain(r.ChainID)
	if _, err := caip.ParseChainID(chain.String()); err != nil {
		return Definition{}, name, fmt.Errorf("chainId %w", err)
	}
	if !known(chain) {
		return Definition{}, name, fmt.Errorf("chain %s is not registered; import it with `core chains import` first", chain)
	}
	address, err := caip.ParseAddress(r.Address)
	if err != nil {
		return Definition{}, name, fmt.Errorf("address %w", err)
	}
	if r.Decimals == nil {
		return Definition{}, name, errors.New("decimals is required")
	}
	definition = Definition{
		ID:     caip.AccountID{Chain: chain, Address: address},
		Symbol: r.Symbol, Decimals: *r.Decimals, Metadata: r.LogoURI,
	}
	return definition, name, definition.validate()
}
