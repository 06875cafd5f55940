package wire

import "time"

// QuoteRequest is a body of POST /v2/quotes that follows the grammar. It should have one of the two amounts.
type QuoteRequest struct {
	Source      Leg
	Destination Leg
	// Deadline is the zero time if the body has none.
	Deadline time.Time
	// Providers are the names of the providers to ask, none for all.
	Providers []string
}
