package apierror

import (
	"net/http"

	"intents.internal/core/screening"
)

// NotAllowedAddresses are the details of ADDRESS_NOT_ALLOWED.
type NotAllowedAddresses struct {
	// Paths are JSON Pointers to the addresses in the request, or in the record of an intent or quote.
	Paths []string `json:"paths"`
}

// ofScreening says neither which address nor why: a list can be wrong.
func ofScreening(refused *screening.NotAllowedError) Error {
	end := "."
	if refused.Contact != "" {
		end = ": " + refused.Contact
	}
	const fact, advice = "This service does not serve an address of this request.", " Use another address, or ask the operator of this service"
	return Error{
		Status: http.StatusForbidden, Code: "ADDRESS_NOT_ALLOWED", Details: NotAllowedAddresses{refused.Paths()}, Message: fact + advice + end,
		Page: Page{Title: "Not served", Text: pageSentence(refused.Paths()) + advice + end, Correctable: true},
	}
}

// pageSentence says in words which address a form has.
func pageSentence(paths []string) string {
	switch {
	case len(paths) > 1:
		return "This service serves neither the account that sends nor the one that receives."
	case paths[0] == "/source/account":
		return "This service does not serve the account that sends."
	case paths[0] == "/destination/account":
		return "This service does not serve the account that receives."
	default:
		return "This service does not serve this wallet."
	}
}
