package solver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/pkg/client"
)

const (
	// pollWait is the long poll wait: the gateway may hold the response for so long until there is an event.
	pollWait = 25 * time.Second
	// pageLimit is the largest page size of the API.
	pageLimit = 1000
	// pageInterval is the pause after a page with events, because a key may make 50 requests a minute.
	pageInterval = 2 * time.Second
)

// feed reads GET /v2/events and stores the references of orders, and the intents that their users sign.
type feed struct {
	events    *client.Events
	transfers *client.Transfers
	health    health

	mu         sync.Mutex
	references map[common.Hash]string
	signed     map[string]*signedIntent
	upToDate   bool
}

func newFeed(config Config) (*feed, error) {
	api, err := client.New(config.Gateway, config.APIKey)
	if err != nil {
		return nil, err
	}
	return &feed{
		events: api.Events, transfers: api.Transfers, references: map[common.Hash]string{}, signed: map[string]*signedIntent{},
		health: health{log: config.Log.With("gateway", config.Gateway)},
	}, nil
}

// reference returns the reference of an order's intent, empty if it has none. known is set if the account created the order's
// intent; upToDate is set if the feed has been read completely, so that an existing intent would be known.
func (f *feed) reference(orderID common.Hash) (reference string, known, upToDate bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reference, known = f.references[orderID]
	return reference, known, f.upToDate
}

// run reads the feed from the beginning, because nothing is stored between runs, and then waits for events.
func (f *feed) run(ctx context.Context) {
	query := client.EventQuery{Limit: pageLimit, Wait: pollWait}
	for {
		page, err := f.events.List(ctx, query)
		var events []client.Event
		switch {
		case err == nil:
			events, query.After = page.Events, page.Next
		case errors.Is(err, client.CodeCursorExpired):
			query.After = "" // from the oldest that is kept
		}
		f.keep(events, err == nil && len(events) < pageLimit)
		pause := pageInterval
		if n := len(events); n == 0 || n == pageLimit {
			pause = 0
		}
		if !sleep(ctx, f.health.report(ctx, err, pause)) {
			return
		}
	}
}

func (f *feed) keep(events []client.Event, upToDate bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.upToDate = upToDate
	for _, event := range events {
		if event.Transfer == nil { // an event of a webhook
			continue
		}
		reference := ""
		if event.Transfer.Reference != nil {
			reference = *event.Transfer.Reference
		}
		f.references[common.HexToHash(event.Transfer.OrderID)] = reference
		f.keepSigned(event.Transfer, reference)
	}
}
