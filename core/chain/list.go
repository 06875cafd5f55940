package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// List is what a chain file holds: the definitions that keep the rules and the rows that do not.
type List struct {
	Chains  []Entry
	Refused []Refusal
}

// Entry is one definition to import. A row that says nothing of a settler leaves the one that is configured alone, so
// that a published list can be imported again and again over an operator's own; "settler": null takes it away.
type Entry struct {
	Chain
	KeepSettler bool
}

// Refusal is a row that was left out and why.
type Refusal struct {
	// Row counts from 0 in the file's order.
	Row    int
	Name   string
	Reason string
}

type row struct {
	ChainID        string  `json:"chainId"`
	Name           string  `json:"name"`
	Environment    string  `json:"environment"`
	Domain         *uint32 `json:"domain"`
	NativeCurrency struct {
		Name     string `json:"name"`
		Symbol   string `json:"symbol"`
		Decimals *uint8 `json:"decimals"`
	} `json:"nativeCurrency"`
	Settler json.RawMessage `json:"settler"`
}

// ReadList reads a chain file, `{"chains":[{chainId, name, environment, nativeCurrency, domain?, settler?}]}`. A row
// that breaks a rule is refused alone; an error means that the file as a whole could not be read.
func ReadList(r io.Reader) (List, error) {
	var file struct {
		Chains []json.RawMessage `json:"chains"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return List{}, fmt.Errorf("read the chain list: %w", err)
	}
	if len(file.Chains) == 0 {
		return List{}, errors.New(`read the chain list: it has no "chains"`)
	}
	var list List
	seen := map[caip.ChainID]bool{}
	for i, raw := range file.Chains {
		entry, name, err := parse(raw)
		if err == nil && seen[entry.ID] {
			err = fmt.Errorf("chain %s stands earlier in the same list", entry.ID)
		}
		if err != nil {
			list.Refused = append(list.Refused, Refusal{Row: i, Name: name, Reason: err.Error()})
			continue
		}
		seen[entry.ID] = true
		list.Chains = append(list.Chains, entry)
	}
	return list, nil
}

func parse(raw json.RawMessage) (entry Entry, name string, err error) {
	var r row
	if err := json.Unmarshal(raw, &r); err != nil {
		return Entry{}, "", fmt.Errorf("not a chain: %w", err)
	}
	name = r.Name
	if entry.ID, err = caip.ParseChainID(r.ChainID); err != nil {
		return Entry{}, name, fmt.Errorf("chainId %w", err)
	}
	if r.NativeCurrency.Decimals == nil {
		return Entry{}, name, errors.New("nativeCurrency.decimals is required")
	}
	entry.Name = r.Name
	entry.Environment = network.Environment(r.Environment)
	entry.NativeCurrency = Currency{
		Name: r.NativeCurrency.Name, Symbol: r.NativeCurrency.Symbol, Decimals: *r.NativeCurrency.Decimals,
	}
	if err := entry.validate(); err != nil {
		return Entry{}, name, err
	}
	if r.Domain != nil {
		entry.Domain = *r.Domain
	} else if entry.Domain, err = DefaultDomain(entry.ID); err != nil {
		return Entry{}, name, err
	}
	entry.KeepSettler = r.Settler == nil
	entry.Settler, err = parseSettler(r.Settler)
	return entry, name, err
}

func parseSettler(raw json.RawMessage) (*Settler, error) {
	if raw == nil {
		return nil, nil
	}
	var r *struct {
		Address   string `json:"address"`
		SameChain bool   `json:"sameChain"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("settler is not one: %w", err)
	}
	if r == nil {
		return nil, nil
	}
	address, err := caip.ParseAddress(r.Address)
	if err != nil {
		return nil, fmt.Errorf("settler.address %w", err)
	}
	return &Settler{Address: address, SameChain: r.SameChain}, nil
}
