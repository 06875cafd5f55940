package account

import (
	"time"

	"github.com/google/uuid"
)

// Usage counts the requests of a key in one minute.
type Usage struct {
	KeyID uuid.UUID
	// Minute is the minute's start.
	Minute time.Time
	// Accepted requests were forwarded, Limited ones were over the rate limit, Refused ones were rejected for another reason.
	Accepted int64
	Limited  int64
	Refused  int64
	// LastUsedAt is the time of the last request, zero if unknown.
	LastUsedAt time.Time
}

// UsageInterval counts the requests of a key in consecutive minutes.
type UsageInterval struct {
	// From is the first minute's start.
	From     time.Time
	Accepted int64
	Limited  int64
	Refused  int64
	// Busiest is the first of the minutes with the most requests.
	Busiest Usage
}
