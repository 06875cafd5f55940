package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

// transfersPath is the path of the list; each intent's page is below it.
const transfersPath = "/console/transfers"

var types = []transfer.Type{transfer.Transfer, transfer.Swap, transfer.Bridge}

// bothEnvironments is the environment of a list of both.
const bothEnvironments = "all"

// transferFilters are the fields of the list's query that restrict it.
var transferFilters = append([]string{"environment", "type", "status", "chain", "since", "until", "reference"}, rareFilters...)

// rareFilters are those that the page folds away.
var rareFilters = []string{"account", "token", "hash", "batch", "label"}

// transferRow is an intent as the list shows it.
type transferRow struct {
	*transfer.Intent
	Source, Destination legView
}

// listTransfers answers GET /console/transfers, newest first, with the filters of the query; after is the last intent of the
// previous page.
func (c *console) listTransfers(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	filter, err := f.transferFilter(user.environment)
	if err != nil {
		return err
	}
	var rows []transferRow
	next := ""
	if f.ok() {
		if rows, next, err = c.transferPage(r, user, f, filter); err != nil {
			return err
		}
	}
	return c.render(w, r, user, "transfers", view{Title: "Transfers", Section: "transfers", Of: filter.Environment, Form: f, Body: map[string]any{
		"Rows": rows, "Next": next, "First": filter.After == nil, "CSV": transfersCSVPath + f.queryOf(transferFilters),
		"Filtered": f.hasAny(transferFilters), "More": f.hasAny(rareFilters) || !f.ok(),
		"Types": types, "Statuses": transfer.Statuses, "Chains": c.chainsOf(filter), "PublicURL": c.PublicURL,
	}})
}

// chainsOf are the chains to choose from: those of the list's environment, and the one that is chosen.
func (c *console) chainsOf(filter intents.TransferFilter) (chains []registry.Chain) {
	for _, known := range c.Registry.Current().Chains {
		if filter.Environment == "" || known.Environment == filter.Environment || known.ID == filter.Chain {
			chains = append(chains, known)
		}
	}
	return chains
}

// transferFilter reads the query. An invalid filter is an error of its field. A query without an environment is of the shown one.
func (f *form) transferFilter(shown network.Environment) (filter intents.TransferFilter, err error) {
	fault := func(field, text string) {
		f.add(pageError{status: http.StatusBadRequest, Field: field, Text: text})
	}
	filter.Environment = shown
	switch given := f.values["environment"]; given {
	case "":
	case bothEnvironments:
		filter.Environment = ""
	default:
		if filter.Environment, err = network.Parse(given); err != nil {
			fault("environment", "There is no such environment.")
		}
	}
	if given := f.values["type"]; given != "" {
		kind, ok := transfer.ParseType(given)
		if !ok {
			fault("type", "There is no such type of transfer.")
		}
		filter.Type = kind
	}
	if given := f.values["status"]; given != "" {
		status, ok := transfer.ParseStatus(given)
		if !ok {
			fault("status", "There is no such status.")
		}
		filter.Statuses = []transfer.Status{status}
	}
	if given := f.values["chain"]; given != "" {
		if filter.Chain, err = caip.ParseChainID(given); err != nil {
			fault("chain", "This is not the id of a chain.")
		}
	}
	filter.CreatedAfter, filter.CreatedBefore = f.days()
	filter.Account = f.onChain("account", filter.Chain)
	filter.Token = f.onChain("token", filter.Chain)
	if given := f.values["batch"]; given != "" {
		id, err := uuid.Parse(given)
		if err != nil {
			fault("batch", "This is not the id of a batch.")
		}
		filter.Batch = &id
	}
	// A text that is not a hash matches no transfer.
	filter.Hash = strings.ToLower(f.values["hash"])
	filter.Reference = strings.TrimSpace(f.values["reference"])
	if given := strings.TrimSpace(f.values["label"]); given != "" && !addLabel(&filter, given) {
		fault("label", "This is not a label: a key, an equals sign and a value, such as customer=42.")
	}
	after, err := f.cursor("after")
	if after != uuid.Nil {
		filter.After = &intents.KeysetCursor{ID: after}
	}
	return filter, err
}

func (c *console) transferPage(r *http.Request, user currentUser, f *form, filter intents.TransferFilter) (rows []transferRow, next string, err error) {
	filter.Limit = pageSize
	intents, after, err := c.Transfers.TransferPage(r.Context(), user.principal.Account.ID, filter)
	if err != nil {
		return nil, "", err
	}
	if after != nil {
		next = transfersPath + f.queryOf(transferFilters, "after", after.ID.String())
	}
	for _, intent := range intents {
		rows = append(rows, c.transferRow(intent))
	}
	return rows, next, nil
}

func (c *console) transferRow(intent *transfer.Intent) transferRow {
	return transferRow{intent, c.legView(intent.Source), c.legView(intent.Destination)}
}

// onChain reads a field with an account or a token: a CAIP-10 id, or an address on the chosen chain, or on any if none is chosen.
func (f *form) onChain(name string, chain caip.ChainID) (id caip.AccountID) {
	given := strings.TrimSpace(f.values[name])
	if given == "" {
		return id
	}
	id, ok := parseAccount(given)
	if !ok {
		f.add(pageError{status: http.StatusBadRequest, Field: name, Text: "This is neither an address nor a chain and an address, such as eip155:1:0x…"})
	}
	if id.Chain == (caip.ChainID{}) {
		id.Chain = chain
	}
	return id
}

// parseAccount reads a CAIP-10 id, or an address, which has no chain.
func parseAccount(text string) (id caip.AccountID, ok bool) {
	var err error
	if strings.Contains(text, ":") {
		id, err = caip.ParseAccountID(text)
	} else {
		id.Address, err = caip.ParseAddress(text)
	}
	if err != nil {
		return caip.AccountID{}, false
	}
	return id, true
}

// addLabel adds a label that is written as a key, an equals sign and a value; ok is false if no intent can have it.
func addLabel(filter *intents.TransferFilter, text string) (ok bool) {
	key, value, ok := strings.Cut(text, "=")
	return ok && filter.AddLabel(key, value) == ""
}

// hasAny reports whether one of the fields was sent.
func (f *form) hasAny(fields []string) bool {
	return slices.ContainsFunc(fields, func(name string) bool { return !f.is(name, "") })
}

// chainName returns the chain's name, or its id if the registry does not have it.
func (c *console) chainName(id caip.ChainID) string {
	if known, ok := c.Registry.Current().Chain(id); ok {
		return known.Name
	}
	return id.String()
}
