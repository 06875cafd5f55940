package webhooks

import (
	"time"

	"intents.internal/core/feed"
)

// MaxPastAttempts is the number of a delivery's attempts that are read at most, the newest.
const MaxPastAttempts = 20

// DeliveryDetails is a delivery with what was sent and what came back.
type DeliveryDetails struct {
	Delivery

	// Event is nil if it is no longer kept.
	Event *feed.Event
	// Past are the attempts that are kept, the newest first, those before a retry or a replay too.
	Past []PastAttempt
}

// PastAttempt is an attempt as it is stored.
type PastAttempt struct {
	EndedAt  time.Time
	Duration time.Duration
	// ResponseStatus is 0 if there was no response.
	ResponseStatus int
	// ResponseBody is nil if there was no response, see Attempt.
	ResponseBody *string
	// Error is why the attempt failed, empty if it did not.
	Error string
}
