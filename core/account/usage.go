package account

import (
	"time"

	"github.com/google/uuid"
)

// Usage counts what was asked with a key in one minute.
type Usage struct {
	KeyID uuid.UUID
	// Minute is the minute's beginning.
	Minute time.Time
	// Accepted requests went through, Limited ones were over the rate limit, Refused ones were turned away otherwise.
	Accepted int64
	Limited  int64
	Refused  int64
	// LastUsedAt is the moment of the last request, zero where it is not known.
	LastUsedAt time.Time
}

// UsageInterval sums up what was asked with a key in some minutes on end.
type UsageInterval struct {
	// From is the first minute's beginning.
	From     time.Time
	Accepted int64
	Limited  int64
	Refused  int64
	// Busiest is the first of the minutes with the most requests.
	Busiest Usage
}
