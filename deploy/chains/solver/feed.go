package solver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// pollWait is the long poll wait, in seconds: the gateway may hold the response for so long until there is an event.
	pollWait = 25
	// pageLimit is the largest page size of the API.
	pageLimit = 1000
	// pageInterval is the pause after a page with events, because a key may make 50 requests a minute.
	pageInterval = 2 * time.Second
	// maxPage bounds a page's length in bytes.
	maxPage = 16 << 20
)

// errCursorExpired is returned if events after the cursor have been deleted.
var errCursorExpired = errors.New("the cursor has expired")

// feed reads GET /v2/events and stores the references of orders.
type feed struct {
	events *url.URL
	apiKey string
	client *http.Client
	health health

	mu         sync.Mutex
	references map[common.Hash]string
	upToDate   bool
}

func newFeed(config Config) (*feed, error) {
	events, err := url.Parse(strings.TrimRight(config.Gateway, "/") + "/v2/events")
	if err != nil {
		return nil, fmt.Errorf("parse the gateway's URL: %w", err)
	}
	return &feed{
		events: events, apiKey: config.APIKey, references: map[common.Hash]string{},
		client: &http.Client{Timeout: pollWait*time.Second + 10*time.Second},
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

// eventPage has the fields of GET /v2/events that are used here.
type eventPage struct {
	Events []struct {
		Data struct {
			OrderID   *common.Hash `json:"orderId"`
			Reference *string      `json:"reference"`
		} `json:"data"`
	} `json:"events"`
	Next string `json:"next"`
}

// run reads the feed from the beginning, because nothing is stored between runs, and then waits for events.
func (f *feed) run(ctx context.Context) {
	after := ""
	for {
		page, err := f.page(ctx, after)
		switch {
		case errors.Is(err, errCursorExpired):
			after = ""
		case err == nil:
			after = page.Next
		}
		f.keep(page, err == nil && len(page.Events) < pageLimit)
		pause := pageInterval
		if n := len(page.Events); n == 0 || n == pageLimit {
			pause = 0
		}
		if !sleep(ctx, f.health.report(ctx, err, pause)) {
			return
		}
	}
}

func (f *feed) keep(page eventPage, upToDate bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.upToDate = upToDate
	for _, event := range page.Events {
		if event.Data.OrderID == nil { // an event of a webhook
			continue
		}
		reference := ""
		if event.Data.Reference != nil {
			reference = *event.Data.Reference
		}
		f.references[*event.Data.OrderID] = reference
	}
}

func (f *feed) page(ctx context.Context, after string) (page eventPage, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageLimit)}, "wait": {strconv.Itoa(pollWait)}}
	if after != "" {
		query.Set("after", after)
	}
	at := *f.events
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return page, fmt.Errorf("ask for events: %w", err)
	}
	request.Header.Set("X-Api-Key", f.apiKey)
	answer, err := f.client.Do(request)
	if err != nil {
		return page, fmt.Errorf("ask for events: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusGone:
		return page, errCursorExpired
	default:
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return page, fmt.Errorf("ask for events: status %d: %s", answer.StatusCode, text)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxPage)).Decode(&page); err != nil {
		return eventPage{}, fmt.Errorf("read a page of events: %w", err)
	}
	return page, nil
}
