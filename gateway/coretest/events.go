package coretest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// Events are what /v2/events answers, as core does: at once, with wire.HeaderPollWait on an empty page whose request may wait.
// It is a handler for Core.Public. An event is no more than its type.
type Events struct {
	// Down makes PathEventAccounts answer 503.
	Down atomic.Bool
	// Asked counts the questions for events, WakeUps those for accounts.
	Asked, WakeUps atomic.Int64
	// BeforeAnswer, if set, runs after the events were read, before the answer leaves.
	BeforeAnswer func()

	mu   sync.Mutex
	all  []event
	gone int
	news chan struct{}
}

type event struct {
	account wire.EventAccount
	kind    string
}

// EventPage is an answer of Events.
type EventPage struct {
	Events []string `json:"events"`
	Next   string   `json:"next"`
}

// Add makes an event of the account, and tells who waits.
func (e *Events) Add(accountID string, env network.Environment, kind string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event{wire.EventAccount{AccountID: accountID, Environment: env}, kind})
	if e.news != nil {
		close(e.news)
		e.news = nil
	}
}

// Forget makes the stand-in unable to say who has events above a position that it has given out so far.
func (e *Events) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event{}) // so that the next position is a new one
	e.gone = len(e.all)
}

// above are the events from a position on, the next position, and what is closed when there are more.
func (e *Events) above(position int) (events []event, next int, news <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.news == nil {
		e.news = make(chan struct{})
	}
	return e.all[min(position, len(e.all)):], len(e.all), e.news
}

func (e *Events) forgot(position int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return position < e.gone
}

func (e *Events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.Asked.Add(1)
	query := r.URL.Query()
	account := wire.EventAccount{AccountID: r.Header.Get(wire.HeaderAccountID), Environment: network.Environment(r.Header.Get(wire.HeaderKeyEnv))}
	_, now, _ := e.above(0)
	position, err := now, error(nil)
	if after := query.Get("after"); after != "now" {
		position, err = strconv.Atoi("0" + strings.TrimPrefix(after, "c"))
	}
	wait, malformed := strconv.Atoi("0" + query.Get("wait"))
	if err != nil || malformed != nil || wait > 25 || len(query["wait"]) > 1 || position > now {
		refuse(w, http.StatusBadRequest, wire.InvalidRequest)
		return
	}
	events, next, _ := e.above(position)
	page := EventPage{Events: []string{}, Next: "c" + strconv.Itoa(next)}
	for _, event := range events {
		if event.account == account && (!query.Has("types") || query.Get("types") == event.kind) {
			page.Events = append(page.Events, event.kind)
		}
	}
	if len(page.Events) == 0 && wait > 0 {
		w.Header().Set(wire.HeaderPollWait, strconv.Itoa(wait))
	}
	if e.BeforeAnswer != nil {
		e.BeforeAnswer()
	}
	answer(w, page)
}

// accounts answers PathEventAccounts.
func (e *Events) accounts(w http.ResponseWriter, r *http.Request) {
	e.WakeUps.Add(1)
	wait, err := time.ParseDuration(r.FormValue("wait"))
	if err != nil || wait > wire.MaxEventAccountsWait {
		refuse(w, http.StatusBadRequest, wire.InvalidRequest)
		return
	}
	if e.Down.Load() {
		refuse(w, http.StatusServiceUnavailable, wire.ServiceUnavailable)
		return
	}
	after := r.FormValue("after")
	if after == "" {
		_, next, _ := e.above(0)
		answer(w, wire.EventAccounts{Position: strconv.Itoa(next), Accounts: []wire.EventAccount{}})
		return
	}
	position, err := strconv.Atoi(after)
	events, next, news := e.above(position)
	if len(events) == 0 {
		select {
		case <-news:
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
		events, next, _ = e.above(position)
	}
	if err != nil || e.forgot(position) {
		refuse(w, http.StatusGone, wire.CursorExpired)
		return
	}
	accounts := []wire.EventAccount{}
	for _, event := range events {
		if !slices.Contains(accounts, event.account) {
			accounts = append(accounts, event.account)
		}
	}
	answer(w, wire.EventAccounts{Position: strconv.Itoa(next), Accounts: accounts})
}
