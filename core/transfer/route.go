package transfer

import (
	"time"

	"github.com/google/uuid"

	"intents.internal/core/registry"
	"intents.internal/pkg/wire"
)

// Quote is the quote that an intent was made from. The zero value is none.
type Quote struct {
	ID       uuid.UUID
	Provider string
	// ExpiresAt is until when the intent's transaction is handed out.
	ExpiresAt time.Time
}

// Route is a swap or bridge of which one amount is not known yet.
type Route struct {
	Type Type
	// Source and Destination are the sides; the amount that is asked for is nil.
	Source, Destination Leg
	Deadline            time.Time
	// DefaultDeadline means that the request named none.
	DefaultDeadline bool
	// LastUse is until when a quote can make the order: later the order would have less than its least lifetime.
	LastUse time.Time
	// LeastValidity is how long a quote must hold for its order to be opened: two blocks of the source chain, and quoteReserve to sign and send.
	LeastValidity time.Duration
	// Settlements are the contracts of every deployment that can execute it, the preferred first.
	Settlements []Settlement
}

// quoteReserve is how long the user has to look at a quote, sign and send.
const quoteReserve = 15 * time.Second

func leastValidity(source registry.Chain) time.Duration { return 2*source.BlockTime + quoteReserve }

// NewRoute resolves a request that has one of the two amounts, or returns a *Rejection for the reasons of New. created is when the order
// would be recorded at the earliest: deadlines are counted from it, and leave time to wait for the quotes and to use one. A transfer delivers what it sends, so it is no route to quote.
func NewRoute(created time.Time, r wire.TransferRequest, known *registry.Snapshot) (*Route, error) {
	d := draft{request: r, known: known, quoting: true}
	if err := d.resolve(); err != nil {
		return nil, err
	}
	if d.kind == Transfer {
		return nil, reject(RouteUnsupported, "A transfer delivers what it sends and needs no quote; quotes are for swaps and bridges.")
	}
	deadline, err := d.deadline(created)
	if err != nil {
		return nil, err
	}
	var usable []deployment
	if err := d.deployments(func(p deployment) (more bool) { usable = append(usable, p); return true }); err != nil {
		return nil, err
	}
	route := &Route{
		Type: d.kind, Source: d.source, Destination: d.destination, Deadline: deadline, DefaultDeadline: r.Deadline.IsZero(),
		LastUse: deadline.Add(-leastLifetime(d.kind, d.sourceChain, d.minDeadline())), LeastValidity: leastValidity(d.sourceChain),
	}
	for _, p := range usable {
		settlement, err := d.settlementOf(p, deadline)
		if err != nil {
			return nil, err
		}
		route.Settlements = append(route.Settlements, settlement)
	}
	return route, nil
}
