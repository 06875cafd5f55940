package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// StandardOrder is the scheme of orders that are a StandardOrder of the Open Intents Framework (github.com/openintentsframework/oif-contracts).
// There is no other scheme.
const StandardOrder = "oif-v1/StandardOrder"

// The bounds of Settlement.ClaimPeriod in seconds, and its default: four hours.
const (
	MinClaimPeriod     = 1
	DefaultClaimPeriod = 4 * 60 * 60
	MaxClaimPeriod     = 365 * 24 * 60 * 60
)

// MaxMinDeadline bounds Settlement.MinDeadline in seconds: six days, while the longest lifetime of an intent is seven.
const MaxMinDeadline = 6 * 24 * 60 * 60

// MaxSettlements is the maximum number of deployments that a chain can have.
const MaxSettlements = 16

// Settlement is a deployment of the contracts that execute orders, as it is on one chain. Addresses are in EIP-55 spelling.
type Settlement struct {
	// Scheme is how orders are encoded and identified: StandardOrder.
	Scheme string `json:"scheme"`
	// Deployment names what belongs together: an order from one chain to another needs the same deployment on both.
	Deployment string `json:"deployment"`
	// InputSettler opens the orders whose source is this chain, and holds their inputs in escrow.
	InputSettler string `json:"inputSettler"`
	// OutputSettler pays the recipients of the orders whose destination is this chain.
	OutputSettler string `json:"outputSettler"`
	// Oracle proves fills from and to this chain; both settlers use it.
	Oracle string `json:"oracle"`
	// ClaimPeriod is how many seconds after its deadline an order opened here can be refunded. The solver must have proved its fill by then.
	ClaimPeriod uint32 `json:"claimPeriod"`
	// MinDeadline is how many seconds the deadline of an order opened here must be away when it is recorded, 0 where the chain's own time is enough.
	// Solvers leave an order alone whose deadline is nearer than their finality.
	MinDeadline uint32 `json:"minDeadline"`
	// Native means that the native token can be an order's input.
	Native bool `json:"native"`
	// SameChain means that orders of this chain can be filled on this chain, as swaps are.
	SameChain bool `json:"sameChain"`
	// OutputOracle is whose Oracle the output of an order opened here names.
	OutputOracle OutputOracle `json:"outputOracle"`
	// Signing are the schemes whose signatures openFor of the input settler takes in place of the user's own transaction. It is nil for none.
	Signing []wire.SigningScheme `json:"signing,omitzero"`
}

// OutputOracle is the side of an order whose oracle its output names.
type OutputOracle string

// The two sides. Destination is the default.
const (
	DestinationOracle OutputOracle = "destination"
	OriginOracle      OutputOracle = "origin"
)

var deploymentName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,63}$`)

// IsDeployment reports whether a deployment can have this name.
func IsDeployment(name string) bool { return deploymentName.MatchString(name) }

// parseSettlements parses the deployments of a chain, the preferred one first.
func parseSettlements(raw json.RawMessage) ([]Settlement, error) {
	if unset(raw) {
		return nil, nil
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, errors.New("settlements must be an array")
	}
	if len(rows) > MaxSettlements {
		return nil, fmt.Errorf("settlements has %d entries, more than %d", len(rows), MaxSettlements)
	}
	var settlements []Settlement
	seen := map[string]bool{}
	for n, row := range rows {
		s, err := parseSettlement(row)
		if err == nil && seen[s.Deployment] {
			err = fmt.Errorf("deployment %q stands earlier in the same list", s.Deployment)
		}
		if err != nil {
			return nil, fmt.Errorf("settlements[%d]: %w", n, err)
		}
		seen[s.Deployment] = true
		settlements = append(settlements, s)
	}
	return settlements, nil
}

func parseSettlement(raw json.RawMessage) (s Settlement, err error) {
	r := struct {
		Scheme        string          `json:"scheme"`
		Deployment    string          `json:"deployment"`
		InputSettler  string          `json:"inputSettler"`
		OutputSettler string          `json:"outputSettler"`
		Oracle        string          `json:"oracle"`
		ClaimPeriod   json.RawMessage `json:"claimPeriod"`
		MinDeadline   json.RawMessage `json:"minDeadline"`
		Native        bool            `json:"native"`
		SameChain     bool            `json:"sameChain"`
		OutputOracle  OutputOracle    `json:"outputOracle"`
		Signing       json.RawMessage `json:"signing"`
	}{SameChain: true, OutputOracle: DestinationOracle}
	if err := decodeStrictly(raw, &r); err != nil {
		return Settlement{}, err
	}
	switch {
	case r.Scheme != StandardOrder:
		return Settlement{}, fmt.Errorf("scheme must be %q, the only one that is supported, not %q", StandardOrder, r.Scheme)
	case !IsDeployment(r.Deployment):
		return Settlement{}, errors.New("deployment must have 1 to 64 characters of a-z, 0-9, dot and hyphen")
	case r.OutputOracle != DestinationOracle && r.OutputOracle != OriginOracle:
		return Settlement{}, fmt.Errorf("outputOracle must be %q or %q, not %q", DestinationOracle, OriginOracle, r.OutputOracle)
	}
	s = Settlement{Scheme: r.Scheme, Deployment: r.Deployment, Native: r.Native, SameChain: r.SameChain, OutputOracle: r.OutputOracle}
	for _, contract := range []struct {
		name, text string
		address    *string
	}{
		{"inputSettler", r.InputSettler, &s.InputSettler}, {"outputSettler", r.OutputSettler, &s.OutputSettler}, {"oracle", r.Oracle, &s.Oracle},
	} {
		if *contract.address, err = caip.ParseAddress(contract.text); err != nil {
			return Settlement{}, fmt.Errorf("%s %w", contract.name, err)
		}
		if *contract.address == caip.ZeroAddress { // a call to it succeeds and does nothing
			return Settlement{}, fmt.Errorf("%s must not be the zero address", contract.name)
		}
	}
	claim, err := parseWholeNumber("claimPeriod", r.ClaimPeriod, MinClaimPeriod, MaxClaimPeriod, DefaultClaimPeriod)
	if err != nil {
		return Settlement{}, err
	}
	deadline, err := parseWholeNumber("minDeadline", r.MinDeadline, 0, MaxMinDeadline, 0)
	if err != nil {
		return Settlement{}, err
	}
	s.ClaimPeriod, s.MinDeadline = uint32(claim), uint32(deadline) //nolint:gosec // both are bounded
	s.Signing, err = parseSigning(r.Signing)
	return s, err
}

// parseSigning parses a list of schemes, each of them once, and is nil for none.
func parseSigning(raw json.RawMessage) ([]wire.SigningScheme, error) {
	if unset(raw) {
		return nil, nil
	}
	var words []*wire.SigningScheme
	if err := json.Unmarshal(raw, &words); err != nil {
		return nil, errors.New("signing must be an array of strings")
	}
	var schemes []wire.SigningScheme
	for n, word := range words {
		switch {
		case word == nil:
			return nil, errors.New("signing must be an array of strings")
		case !slices.Contains(wire.SigningSchemes, *word):
			return nil, fmt.Errorf("signing[%d] must be %q or %q, not %q", n, wire.Permit2, wire.ERC3009, *word)
		case slices.Contains(schemes, *word):
			return nil, fmt.Errorf("signing[%d]: %q stands earlier in the same list", n, *word)
		}
		schemes = append(schemes, *word)
	}
	return schemes, nil
}
