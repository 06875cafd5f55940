package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// transferList is a list as requested by the query parameters. A limit of 0 is no limit.
type transferList struct {
	filter intents.TransferFilter
	limit  int
}

// bothEnvironments is the value of the parameter environment for a list that is not restricted to one.
const bothEnvironments = "all"

// statusNames are all statuses, for the text of an error.
var statusNames = func() string {
	names := make([]string, len(transfer.Statuses))
	for n, status := range transfer.Statuses {
		names[n] = string(status)
	}
	return strings.Join(names, ", ")
}()

// transferParameters parse the query parameters of GET /v2/transfers. Each returns the error text for the client, empty for none.
var transferParameters = map[string]func(list *transferList, given string) string{
	"environment": func(list *transferList, given string) string {
		environment, err := network.Parse(given)
		if err != nil && given != bothEnvironments {
			return fmt.Sprintf("must be %q, %q or %q", network.Test, network.Live, bothEnvironments)
		}
		list.filter.Environment = environment
		return ""
	},
	"type": func(list *transferList, given string) string {
		var ok bool
		if list.filter.Type, ok = transfer.ParseType(given); !ok {
			return fmt.Sprintf("must be %q, %q or %q", transfer.Transfer, transfer.Swap, transfer.Bridge)
		}
		return ""
	},
	"status": func(list *transferList, given string) string {
		for word := range strings.SplitSeq(given, ",") {
			status, ok := transfer.ParseStatus(word)
			if !ok || slices.Contains(list.filter.Statuses, status) {
				return fmt.Sprintf("must be statuses with commas between them, each once; they are %s", statusNames)
			}
			list.filter.Statuses = append(list.filter.Statuses, status)
		}
		return ""
	},
	"chain-id": func(list *transferList, given string) (issue string) {
		list.filter.Chain, issue = parsed(caip.ParseChainID(given))
		return issue
	},
	"destination-chain": func(list *transferList, given string) (issue string) {
		list.filter.DestinationChain, issue = parsed(caip.ParseChainID(given))
		return issue
	},
	"account": func(list *transferList, given string) (issue string) {
		list.filter.Account, issue = parsed(caip.ParseAccountID(given))
		return issue
	},
	"token": func(list *transferList, given string) (issue string) {
		list.filter.Token, issue = parsed(caip.ParseAccountID(given))
		return issue
	},
	"order-id": func(list *transferList, given string) string {
		id, ok := transfer.ParseHash(given)
		if !ok {
			return "must be 0x and 64 hexadecimal digits"
		}
		list.filter.OrderID = &id
		return ""
	},
	"batch": func(list *transferList, given string) (issue string) {
		id, ok := route.ParseUUID(given)
		if !ok {
			return "must be the id of a batch: a UUID in lower case"
		}
		list.filter.Batch = &id
		return ""
	},
	"hash": func(list *transferList, given string) string {
		if _, ok := transfer.ParseHash(given); !ok {
			return "must be 0x and 64 hexadecimal digits"
		}
		list.filter.Hash = strings.ToLower(given)
		return ""
	},
	"reference": func(list *transferList, given string) string {
		if n := utf8.RuneCountInString(given); n < 1 || n > wire.MaxReferenceLength || !utf8.ValidString(given) {
			return "must have 1 to 128 characters"
		}
		list.filter.Reference = given
		return ""
	},
	"updated-since": func(list *transferList, given string) (issue string) {
		list.filter.UpdatedSince, issue = parsedTime(given)
		return issue
	},
	"created-after": func(list *transferList, given string) (issue string) {
		list.filter.CreatedAfter, issue = parsedTime(given)
		return issue
	},
	"created-before": func(list *transferList, given string) (issue string) {
		list.filter.CreatedBefore, issue = parsedTime(given)
		return issue
	},
	"cursor": func(list *transferList, given string) (issue string) {
		list.filter.After, issue = parsed(parseCursor(given))
		return issue
	},
	"limit": func(list *transferList, given string) (issue string) {
		list.limit, issue = parsed(route.WholeNumber(given, 1, bufferedRows))
		return issue
	},
}

// labelPrefix begins the parameters that filter by a label; the label's key follows.
const labelPrefix = "label."

// set parses one parameter. It returns the error text for the client, empty for none.
func (list *transferList) set(name, given string) string {
	if key, ok := strings.CutPrefix(name, labelPrefix); ok {
		return list.filter.AddLabel(key, given)
	}
	return transferParameters[name](list, given)
}

// parsed converts an error into the text for the client.
func parsed[T any](value T, err error) (T, string) {
	if err != nil {
		return value, err.Error()
	}
	return value, ""
}

// parsedTime parses a time from 1970 on.
func parsedTime(given string) (at time.Time, issue string) {
	at, err := time.Parse(time.RFC3339, given)
	if err != nil || at.Year() < 1970 {
		return time.Time{}, "must be an RFC 3339 time such as 2027-01-01T00:00:00Z"
	}
	return at, ""
}

// parseTransferList parses the query parameters of a caller, whose environment the list is restricted to unless they name another.
func parseTransferList(r *http.Request, by transfer.Caller) (transferList, error) {
	names := []string{labelPrefix + "*"}
	for name := range transferParameters {
		names = append(names, name)
	}
	parameters, err := route.Query(r, names...)
	if err != nil {
		return transferList{}, err
	}
	list := transferList{filter: intents.TransferFilter{Environment: by.Environment}}
	var issues []wire.Issue
	for name, given := range parameters {
		if message := list.set(name, given); message != "" {
			issues = append(issues, wire.Issue{Path: name, Message: message})
		}
	}
	if after := list.filter.After; after != nil && after.UpdatedAt.IsZero() != list.filter.UpdatedSince.IsZero() {
		issues = append(issues, wire.Issue{Path: "cursor", Message: errCursor.Error()})
	}
	if len(issues) > 0 {
		slices.SortFunc(issues, func(a, b wire.Issue) int { return strings.Compare(a.Path, b.Path) })
		return transferList{}, route.Invalid(issues...)
	}
	return list, nil
}
