package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// ChainList is the content of a chain file: the valid definitions and the rejected rows.
type ChainList struct {
	Chains  []ChainEntry
	Refused []RefusedChain
}

// ChainEntry is one definition to import. Operator data that a row omits keeps its configured value, so that a published list can be
// imported repeatedly over an operator's configuration. null removes settlements or RPC URLs and resets the others to the defaults
// of a new chain.
type ChainEntry struct {
	Chain
	KeepSettlements   bool
	KeepConfirmations bool
	KeepFinality      bool
	KeepBlockTime     bool
	KeepRPCURLs       bool
	KeepWrappedNative bool
	KeepExplorer      bool
	// DefaultDepth means that the confirmations are the default of the block time that the chain has after the import.
	DefaultDepth bool
}

// Over returns the definition after the entry is imported over a known chain.
func (e ChainEntry) Over(known Chain) Chain {
	after := e.Chain
	if e.KeepSettlements {
		after.Settlements = known.Settlements
	}
	if e.KeepConfirmations {
		after.Confirmations = known.Confirmations
	}
	if e.KeepFinality {
		after.Finality = known.Finality
	}
	if e.KeepBlockTime {
		after.BlockTime = known.BlockTime
	}
	if e.KeepRPCURLs {
		after.RPCURLs = known.RPCURLs
	}
	if e.KeepWrappedNative {
		after.WrappedNative = known.WrappedNative
	}
	if e.KeepExplorer {
		after.Explorer = known.Explorer
	}
	if e.DefaultDepth && !e.KeepConfirmations {
		after.Confirmations = DefaultDepth(after.BlockTime)
	}
	return after
}

// RefusedChain is a rejected row and the reason.
type RefusedChain struct {
	// Row counts from 0 in the file's order.
	Row    int
	Name   string
	Reason string
}

type chainJSON struct {
	ChainID        string `json:"chainId"`
	Name           string `json:"name"`
	Environment    string `json:"environment"`
	NativeCurrency struct {
		Name     string `json:"name"`
		Symbol   string `json:"symbol"`
		Decimals *uint8 `json:"decimals"`
	} `json:"nativeCurrency"`
	Settlements   json.RawMessage `json:"settlements"`
	Confirmations json.RawMessage `json:"confirmations"`
	Finality      json.RawMessage `json:"finality"`
	BlockTimeMS   json.RawMessage `json:"blockTimeMs"`
	RPCURLs       json.RawMessage `json:"rpcUrls"`
	WrappedNative json.RawMessage `json:"wrappedNative"`
	Explorer      json.RawMessage `json:"explorer"`
}

// ReadChainList parses a chain file, `{"chains":[{chainId, name, environment, nativeCurrency, settlements?, confirmations?,
// finality?, blockTimeMs?, rpcUrls?, wrappedNative?, explorer?}]}`. A row that breaks a rule or has an unknown member is rejected alone; an error
// means that the complete file could not be read.
func ReadChainList(r io.Reader) (ChainList, error) {
	var file struct {
		Chains []json.RawMessage `json:"chains"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return ChainList{}, fmt.Errorf("read the chain list: %w", err)
	}
	if len(file.Chains) == 0 {
		return ChainList{}, errors.New(`read the chain list: it has no "chains"`)
	}
	var list ChainList
	seen := map[caip.ChainID]bool{}
	for i, raw := range file.Chains {
		entry, name, err := parseChain(raw)
		if err == nil && seen[entry.ID] {
			err = fmt.Errorf("chain %s stands earlier in the same list", entry.ID)
		}
		if err != nil {
			list.Refused = append(list.Refused, RefusedChain{Row: i, Name: name, Reason: err.Error()})
			continue
		}
		seen[entry.ID] = true
		list.Chains = append(list.Chains, entry)
	}
	return list, nil
}

func parseChain(raw json.RawMessage) (entry ChainEntry, name string, err error) {
	var r chainJSON
	err = decodeStrictly(raw, &r)
	if name = r.Name; err != nil {
		return ChainEntry{}, name, fmt.Errorf("not a chain: %w", err)
	}
	if entry.ID, err = caip.ParseChainID(r.ChainID); err != nil {
		return ChainEntry{}, name, fmt.Errorf("chainId %w", err)
	}
	if r.NativeCurrency.Decimals == nil {
		return ChainEntry{}, name, errors.New("nativeCurrency.decimals is required")
	}
	entry.Name = r.Name
	entry.Environment = network.Environment(r.Environment)
	entry.NativeCurrency = Currency{
		Name: r.NativeCurrency.Name, Symbol: r.NativeCurrency.Symbol, Decimals: *r.NativeCurrency.Decimals,
	}
	if err := entry.validate(); err != nil {
		return ChainEntry{}, name, err
	}
	return entry, name, entry.readOperatorData(r)
}

func (e *ChainEntry) readOperatorData(r chainJSON) (err error) {
	e.KeepSettlements, e.KeepConfirmations = r.Settlements == nil, r.Confirmations == nil
	e.KeepFinality, e.KeepBlockTime, e.KeepRPCURLs = r.Finality == nil, r.BlockTimeMS == nil, r.RPCURLs == nil
	if e.Settlements, err = parseSettlements(r.Settlements); err != nil {
		return err
	}
	e.KeepWrappedNative = r.WrappedNative == nil
	if e.WrappedNative, err = parseWrappedNative(r.WrappedNative); err != nil {
		return err
	}
	e.KeepExplorer = r.Explorer == nil
	if e.Explorer, err = parseExplorer(r.Explorer); err != nil {
		return err
	}
	if e.RPCURLs, err = parseRPCURLs(r.RPCURLs); err != nil {
		return err
	}
	if e.Finality, err = parseFinality(r.Finality); err != nil {
		return err
	}
	milliseconds, err := parseWholeNumber("blockTimeMs", r.BlockTimeMS,
		uint64(MinBlockTime/time.Millisecond), uint64(MaxBlockTime/time.Millisecond), uint64(DefaultBlockTime/time.Millisecond))
	if err != nil {
		return err
	}
	e.BlockTime = time.Duration(milliseconds) * time.Millisecond //nolint:gosec // at most MaxBlockTime
	e.DefaultDepth = unset(r.Confirmations) && r.Confirmations != nil
	e.Confirmations, err = parseWholeNumber("confirmations", r.Confirmations, 1, MaxConfirmations, DefaultDepth(e.BlockTime))
	return err
}

// decodeStrictly decodes a JSON object and refuses unknown members by name.
func decodeStrictly(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func parseWrappedNative(raw json.RawMessage) (symbol string, err error) {
	if unset(raw) {
		return "", nil
	}
	if err := json.Unmarshal(raw, &symbol); err != nil || !isSymbol(symbol) {
		return "", fmt.Errorf("wrappedNative must be the symbol of a token, of 1 to %d printable characters", maxSymbolLength)
	}
	return symbol, nil
}

func parseFinality(raw json.RawMessage) (Finality, error) {
	if unset(raw) {
		return Depth, nil
	}
	var word string
	if err := json.Unmarshal(raw, &word); err != nil {
		return "", fmt.Errorf("finality must be a string: %w", err)
	}
	return ParseFinality(word)
}

// parseWholeNumber accepts only a number in plain digits, not 12.0, 1e1 or "12".
func parseWholeNumber(name string, raw json.RawMessage, least, most, byDefault uint64) (uint64, error) {
	if unset(raw) {
		return byDefault, nil
	}
	number, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || number < least || number > most {
		return 0, fmt.Errorf("%s must be a whole number from %d to %d, in digits", name, least, most)
	}
	return number, nil
}

// unset reports whether a member is absent or null.
func unset(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }
