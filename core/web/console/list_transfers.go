package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/intents"
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
var transferFilters = []string{"environment", "type", "status", "chain", "hash", "reference", "batch"}

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
		"Rows": rows, "Next": next, "First": filter.After == nil,
		"Filtered": slices.ContainsFunc(transferFilters, func(name string) bool { return !f.is(name, "") }),
		"Types":    types, "Statuses": transfer.Statuses, "Chains": c.Registry.Current().Chains, "PublicURL": c.PublicURL,
	}})
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
		next = f.pageAfter(after.ID)
	}
	for _, intent := range intents {
		rows = append(rows, c.transferRow(intent))
	}
	return rows, next, nil
}

func (c *console) transferRow(intent *transfer.Intent) transferRow {
	return transferRow{intent, c.legView(intent.Source), c.legView(intent.Destination)}
}

// pageAfter returns the URL of the next page with the same filters.
func (f *form) pageAfter(last uuid.UUID) string {
	query := url.Values{"after": {last.String()}}
	for _, name := range transferFilters {
		if !f.is(name, "") {
			query.Set(name, f.values[name])
		}
	}
	return "/console/transfers?" + query.Encode()
}

// chainName returns the chain's name, or its id if the registry does not have it.
func (c *console) chainName(id caip.ChainID) string {
	if known, ok := c.Registry.Current().Chain(id); ok {
		return known.Name
	}
	return id.String()
}
