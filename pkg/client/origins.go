package client

import (
	"context"
	"net/http"
)

// Origins has the origins of the pages that may send client tokens of the account, such as https://app.example.com.
type Origins struct{ c *Client }

// Get returns the origins.
func (s *Origins) Get(ctx context.Context) (*OriginList, error) {
	return call[OriginList](ctx, s.c, request{method: http.MethodGet, path: "/v2/origins"})
}

// Update replaces the origins by at most 20 others, none for no page at all. It is tried once.
func (s *Origins) Update(ctx context.Context, origins ...string) (*OriginList, error) {
	body := OriginList{Origins: append([]string{}, origins...)}
	return call[OriginList](ctx, s.c, request{method: http.MethodPatch, path: "/v2/origins", body: body})
}

// OriginList has origins, each once and sorted.
type OriginList struct {
	Origins []string `json:"origins"`
}
