package auth

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// keyListJSON has the shape that better-auth's client expects since 1.5. Limit and Offset repeat the request's.
type keyListJSON struct {
	APIKeys []keyJSON `json:"apiKeys"`
	Total   int       `json:"total"`
	Limit   *int      `json:"limit,omitempty"`
	Offset  *int      `json:"offset,omitempty"`
}

// listKeys answers GET /auth/api-key/list with the account's keys, newest first unless the request sets another order.
func (s *Server) listKeys(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "limit", "offset", "sortBy", "sortDirection")
	if err != nil {
		return err
	}
	wanted, err := parseKeyPage(parameters)
	if err != nil {
		return err
	}
	keys, err := s.Identities.Keys(r.Context(), actingID(r))
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, keyListJSON{
		APIKeys: route.Each(wanted.of(keys), newKeyJSON), Total: len(keys), Limit: wanted.limit, Offset: wanted.offset,
	})
}

// keyPage is the requested part of a list of keys. nil means no bound; without an order the newest key is first.
type keyPage struct {
	limit, offset *int
	order         func(a, b *account.Key) int
	descending    bool
}

// keyOrders are the sort fields of keys. A key that never expires sorts after all that do.
var keyOrders = map[string]func(a, b *account.Key) int{
	"name":      func(a, b *account.Key) int { return cmp.Compare(a.Name, b.Name) },
	"createdAt": func(a, b *account.Key) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"updatedAt": func(a, b *account.Key) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	"expiresAt": func(a, b *account.Key) int { return compareExpiry(a.ExpiresAt, b.ExpiresAt) },
}

func compareExpiry(a, b *time.Time) int {
	switch {
	case a != nil && b != nil:
		return a.Compare(*b)
	case a != nil:
		return -1
	case b != nil:
		return 1
	}
	return 0
}

func parseKeyPage(parameters map[string]string) (page keyPage, err error) {
	var issues []wire.Issue
	number := func(name string) *int {
		if _, given := parameters[name]; !given {
			return nil
		}
		n, found := route.NumberParameter(parameters, name, 0)
		issues = append(issues, found...)
		return &n
	}
	page.limit, page.offset = number("limit"), number("offset")
	if by, given := parameters["sortBy"]; given {
		if page.order = keyOrders[by]; page.order == nil {
			issues = append(issues, wire.Issue{Path: "sortBy", Message: "must be name, createdAt, updatedAt or expiresAt"})
		}
	}
	switch parameters["sortDirection"] {
	case "desc":
		page.descending = true
	case "asc", "":
	default:
		issues = append(issues, wire.Issue{Path: "sortDirection", Message: "must be asc or desc"})
	}
	if len(issues) > 0 {
		return keyPage{}, route.Invalid(issues...)
	}
	return page, nil
}

func (p keyPage) of(keys []*account.Key) []*account.Key {
	if p.order != nil {
		slices.SortStableFunc(keys, p.order)
		if p.descending {
			slices.Reverse(keys)
		}
	}
	if p.offset != nil {
		keys = keys[min(*p.offset, len(keys)):]
	}
	if p.limit != nil {
		keys = keys[:min(*p.limit, len(keys))]
	}
	return keys
}
