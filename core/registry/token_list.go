package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"intents.internal/pkg/caip"
)

// TokenList is the content of a token list for this registry: the valid definitions and the rejected rows.
type TokenList struct {
	Name    string
	Tokens  []Token
	Refused []RefusedToken
	// Unknown counts, by chain number, the rows of chains that are not registered.
	Unknown map[uint64]int
}

// maxRows is the maximum number of tokens that the Token Lists schema allows in one list.
const maxRows = 10_000

// RefusedToken is a rejected row and the reason.
type RefusedToken struct {
	// Row counts from 0 in the file's order.
	Row    int
	Name   string
	Reason string
}

type tokenJSON struct {
	ChainID  uint64 `json:"chainId"`
	Address  string `json:"address"`
	Symbol   string `json:"symbol"`
	Decimals *uint8 `json:"decimals"`
	LogoURI  string `json:"logoURI"`

	// Name is ignored if it is not a string, because a row can be used without it.
	Name any `json:"name"`

	ERC3009       json.RawMessage `json:"erc3009"`
	EIP2612       json.RawMessage `json:"eip2612"`
	FeeOnTransfer bool            `json:"feeOnTransfer"`
	// Other lists may use these two names for other data; values that are not strings are ignored.
	Extensions struct {
		Source  any `json:"source"`
		License any `json:"license"`
	} `json:"extensions"`
}

// ReadTokenList parses a token list in the Uniswap Token Lists JSON schema (https://tokenlists.org), whose rows may also have erc3009, eip2612
// and feeOnTransfer. Rows on chains for which known
// returns false are counted and omitted: a token without a chain could not be used. A row that breaks a rule is rejected alone,
// and a row that repeats an earlier one is omitted. An error means that the complete file could not be read.
func ReadTokenList(r io.Reader, known func(caip.ChainID) bool) (TokenList, error) {
	var file struct {
		Name   string            `json:"name"`
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return TokenList{}, fmt.Errorf("read the token list: %w", err)
	}
	if len(file.Tokens) == 0 {
		return TokenList{}, errors.New(`read the token list: it has no "tokens"`)
	}
	if len(file.Tokens) > maxRows {
		return TokenList{}, fmt.Errorf("read the token list: it has %d tokens, over the %d of the Token Lists schema; split it", len(file.Tokens), maxRows)
	}
	list := TokenList{Name: file.Name, Unknown: map[uint64]int{}}
	first := map[caip.AccountID]int{} // indexes into list.Tokens
	for i, raw := range file.Tokens {
		definition, name, err := parseToken(raw, known)
		if errors.Is(err, errUnknownChain) {
			number, _ := definition.ID.Chain.Number()
			list.Unknown[number]++
			continue
		}
		earlier, repeated := first[definition.ID]
		if err == nil && repeated {
			if list.Tokens[earlier].sameDefinition(definition) {
				continue
			}
			err = fmt.Errorf("token %s stands earlier in the same list with other values; remove one of the two", definition.ID)
		}
		if err != nil {
			list.Refused = append(list.Refused, RefusedToken{Row: i, Name: name, Reason: err.Error()})
			continue
		}
		first[definition.ID] = len(list.Tokens)
		list.Tokens = append(list.Tokens, definition)
	}
	return list, nil
}

var errUnknownChain = errors.New("the chain is not registered")

func parseToken(raw json.RawMessage, known func(caip.ChainID) bool) (definition Token, name string, err error) {
	var r tokenJSON
	if err := json.Unmarshal(raw, &r); err != nil {
		return Token{}, "", fmt.Errorf("not a token: %w", err)
	}
	name = r.Symbol
	chain := caip.EIP155Chain(r.ChainID)
	if _, err := caip.ParseChainID(chain.String()); err != nil {
		return Token{}, name, fmt.Errorf("chainId %w", err)
	}
	definition.ID.Chain = chain
	if !known(chain) {
		return definition, name, errUnknownChain
	}
	if definition.ID.Address, err = caip.ParseAddress(r.Address); err != nil {
		return Token{}, name, fmt.Errorf("address %w", err)
	}
	if r.Decimals == nil {
		return Token{}, name, errors.New("decimals is required; the contract's decimals() has it")
	}
	definition.Symbol, definition.Decimals, definition.Metadata = r.Symbol, *r.Decimals, r.LogoURI
	definition.Name = displayName(r.Name)
	definition.Source, _ = r.Extensions.Source.(string)
	definition.License, _ = r.Extensions.License.(string)
	if err := definition.readSigning(r); err != nil {
		return Token{}, name, err
	}
	return definition, name, definition.validate()
}

// displayName returns the name without surrounding white space, or none where it could not be shown: the token is known by its address.
func displayName(given any) string {
	name, _ := given.(string)
	if name = strings.TrimSpace(name); !printable(name) || utf8.RuneCountInString(name) > maxNameLength {
		return ""
	}
	return name
}

// readSigning refuses unknown members: a misspelt form would be the default one.
func (d *Token) readSigning(r tokenJSON) error {
	d.FeeOnTransfer = r.FeeOnTransfer
	if !unset(r.ERC3009) {
		d.ERC3009 = &ERC3009{Form: BytesForm}
		if err := decodeStrictly(r.ERC3009, d.ERC3009); err != nil {
			return fmt.Errorf("erc3009: %w", err)
		}
	}
	if !unset(r.EIP2612) {
		d.EIP2612 = &EIP712Domain{}
		if err := decodeStrictly(r.EIP2612, d.EIP2612); err != nil {
			return fmt.Errorf("eip2612: %w", err)
		}
	}
	return nil
}
