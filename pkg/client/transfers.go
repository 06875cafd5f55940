package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Transfers makes, reads and changes intents. An intent is named by its id or its order id.
type Transfers struct{ c *Client }

// Create makes an intent. It is repeated with the same Idempotency-Key, so that a lost response does not make a second one.
func (s *Transfers) Create(ctx context.Context, create CreateTransfer) (*Transfer, error) {
	return call[Transfer](ctx, s.c, request{
		method: http.MethodPost, path: "/v2/transfers", body: create, idempotencyKey: cmp.Or(create.IdempotencyKey, rand.Text()),
	})
}

// Get reads an intent.
func (s *Transfers) Get(ctx context.Context, id string) (*Transfer, error) {
	return call[Transfer](ctx, s.c, request{method: http.MethodGet, path: transferPath(id, "")})
}

// Update changes the reference and the labels of an intent in any status. It is tried once.
func (s *Transfers) Update(ctx context.Context, id string, update UpdateTransfer) (*Transfer, error) {
	return call[Transfer](ctx, s.c, request{method: http.MethodPatch, path: transferPath(id, ""), body: update})
}

// UpdateTransfer says what to change of an intent. Zero values change nothing.
type UpdateTransfer struct {
	Reference Change[string] `json:"reference,omitzero"`
	// Labels are the labels to set, with nil for those to remove; SetToNull removes all.
	Labels Change[map[string]*string] `json:"labels,omitzero"`
}

// Cancel takes an intent back that was not sent. It is tried once.
func (s *Transfers) Cancel(ctx context.Context, id string) (*Transfer, error) {
	return call[Transfer](ctx, s.c, request{method: http.MethodPost, path: transferPath(id, "/cancel")})
}

// Simulate takes an intent of the test environment to a status without a transaction, through each status on the way. The intent is never sent
// then. It is tried once.
func (s *Transfers) Simulate(ctx context.Context, id string, status TransferStatus) (*Transfer, error) {
	body := SimulateTransfer{Status: status}
	return call[Transfer](ctx, s.c, request{method: http.MethodPost, path: transferPath(id, "/simulate"), body: body})
}

// SimulateTransfer is the body of Simulate.
type SimulateTransfer struct {
	// Status is none of StatusCreated and StatusCancelled.
	Status TransferStatus `json:"status"`
}

// Report tells the hash of a transaction that was sent for an intent. It is tried once: the service finds the transaction on the chain too.
func (s *Transfers) Report(ctx context.Context, id, hash string) (*Transfer, error) {
	body := ReportTransaction{Hash: hash}
	return call[Transfer](ctx, s.c, request{method: http.MethodPost, path: transferPath(id, "/transaction"), body: body})
}

// ReportTransaction is the body of Report.
type ReportTransaction struct {
	Hash string `json:"hash"`
}

// Preflight tells what the calls of an intent's transaction would do now.
func (s *Transfers) Preflight(ctx context.Context, id string) (*Preflight, error) {
	return call[Preflight](ctx, s.c, request{method: http.MethodGet, path: transferPath(id, "/preflight")})
}

// Preflight is what the calls of an intent's transaction would do now.
type Preflight struct {
	// OK is whether every check is: nothing speaks against sending the calls.
	OK     bool             `json:"ok"`
	Checks []PreflightCheck `json:"checks"`
	// Gas is what all calls need together, nil where one would fail or it is not known.
	Gas *string `json:"gas"`
}

// PreflightCheck is one of the checks. Detail is a sentence for people.
type PreflightCheck struct {
	Name CheckName `json:"name"`
	OK   bool      `json:"ok"`
	// Needed is what is missing and the calls bring, and Unknown what no node can tell before they are sent. Both are OK.
	Needed  bool   `json:"needed,omitzero"`
	Unknown bool   `json:"unknown,omitzero"`
	Detail  string `json:"detail"`
}

// CheckName is what a preflight checks.
type CheckName string

// Checks.
const (
	CheckBalance    CheckName = "balance"
	CheckAllowance  CheckName = "allowance"
	CheckDeadline   CheckName = "deadline"
	CheckSettler    CheckName = "settler"
	CheckSimulation CheckName = "simulation"
	// Of an intent that is signed.
	CheckSignature     CheckName = "signature"
	CheckNonce         CheckName = "nonce"
	CheckAuthorization CheckName = "authorization"
)

// Events returns what has happened to an intent of the key's environment, oldest first, with the ids and bodies that the feed has.
func (s *Transfers) Events(ctx context.Context, id string) (*TransferEvents, error) {
	return call[TransferEvents](ctx, s.c, request{method: http.MethodGet, path: transferPath(id, "/events")})
}

// TransferEvents are the events of an intent.
type TransferEvents struct {
	Events []Event `json:"events"`
}

// Refund returns the transaction on the source chain that pays the sender of an expired order back. Anyone may send it, and it is not to be
// reported. CodeNotRefundable means that there is nothing to refund now.
func (s *Transfers) Refund(ctx context.Context, id string) (*Refund, error) {
	return call[Refund](ctx, s.c, request{method: http.MethodGet, path: transferPath(id, "/refund")})
}

// Refund has the transaction of a refund.
type Refund struct {
	Tx Transaction `json:"tx"`
}

// TransferQuery chooses intents. A zero field does not restrict.
type TransferQuery struct {
	// Environment is that of the key where it is empty.
	Environment EnvironmentFilter
	Type        TransferType
	Status      []TransferStatus
	ChainID     string // the source chain
	// DestinationChain is the chain of the destination.
	DestinationChain string
	// Account and Token are CAIP-10 ids, of either side.
	Account, Token string
	OrderID        string
	Hash           string
	Reference      string
	// Labels are values by key that an intent must have, all of them.
	Labels map[string]string
	// Batch is the id of the batch that they were made in.
	Batch string
	// CreatedAfter is the earliest time of creation, and CreatedBefore is later than the last.
	CreatedAfter, CreatedBefore time.Time
	// UpdatedSince lists what has changed since then, the oldest change first.
	UpdatedSince time.Time
	// Limit is the length of a page, by default 100.
	Limit int
	// Cursor is the Next of the page before.
	Cursor string
}

// EnvironmentFilter chooses the environments of a list.
type EnvironmentFilter string

// Environments of a list.
const (
	OnlyTest        EnvironmentFilter = "test"
	OnlyLive        EnvironmentFilter = "live"
	AllEnvironments EnvironmentFilter = "all"
)

// TransferPage is a page of a list. A page of a filtered list may be empty and have a next one.
type TransferPage struct {
	Transfers []TransferSummary
	// Next is the cursor of the next page, empty on the last.
	Next string
}

// defaultLimit is the length of a page unless the caller says another.
const defaultLimit = 100

// List returns a page of the account's intents in the key's environment, or those that the query names, newest first.
func (s *Transfers) List(ctx context.Context, query TransferQuery) (*TransferPage, error) {
	values := url.Values{"limit": {strconv.Itoa(cmp.Or(query.Limit, defaultLimit))}}
	statuses := make([]string, len(query.Status))
	for i, status := range query.Status {
		statuses[i] = string(status)
	}
	for name, value := range map[string]string{
		"environment": string(query.Environment), "type": string(query.Type), "status": strings.Join(statuses, ","), "chain-id": query.ChainID, "order-id": query.OrderID,
		"destination-chain": query.DestinationChain, "account": query.Account, "token": query.Token,
		"hash": query.Hash, "reference": query.Reference, "batch": query.Batch, "cursor": query.Cursor,
	} {
		setNonEmpty(values, name, value)
	}
	for key, value := range query.Labels {
		values.Set("label."+key, value)
	}
	for name, at := range map[string]time.Time{
		"updated-since": query.UpdatedSince, "created-after": query.CreatedAfter, "created-before": query.CreatedBefore,
	} {
		if !at.IsZero() {
			values.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	page := &TransferPage{}
	header, err := s.c.do(ctx, request{method: http.MethodGet, path: "/v2/transfers", query: values}, &page.Transfers)
	if err != nil {
		return nil, err
	}
	page.Next = nextCursor(header.Get("Link"))
	return page, nil
}

// All yields every intent that the query chooses, page after page. An error ends it.
func (s *Transfers) All(ctx context.Context, query TransferQuery) iter.Seq2[TransferSummary, error] {
	return func(yield func(TransferSummary, error) bool) {
		for {
			page, err := s.List(ctx, query)
			if err != nil {
				yield(TransferSummary{}, err)
				return
			}
			for _, transfer := range page.Transfers {
				if !yield(transfer, nil) {
					return
				}
			}
			if query.Cursor = page.Next; query.Cursor == "" {
				return
			}
		}
	}
}

func transferPath(id, rest string) string { return "/v2/transfers/" + url.PathEscape(id) + rest }

// nextCursor takes the cursor alone of the Link to the next page, so that no response sends the key elsewhere.
func nextCursor(link string) string {
	target, _, found := strings.Cut(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	next, err := url.Parse(target)
	if !found || err != nil {
		return ""
	}
	return next.Query().Get("cursor")
}
