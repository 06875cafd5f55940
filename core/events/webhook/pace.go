package webhook

import (
	"errors"
	"time"
)

// The rate of an endpoint's deliveries: deliveryBurst at once, and one each deliveryInterval on average, 100 a second. It is above
// what the requests of one account cause (1,000 intents a minute of four events each), so that it only spreads replays.
const (
	deliveryInterval = 10 * time.Millisecond
	deliveryBurst    = 1000
)

// An account replays ReplayBurst times, once to each of its endpoints, and then once each ReplayInterval.
const (
	ReplayBurst    = MaxEndpoints
	ReplayInterval = 30 * time.Minute
)

// ErrTooManyReplays means that an account has no replay left.
var ErrTooManyReplays = errors.New("the account has replayed as often as it may for now")

// Pace spreads the first attempts of an endpoint's deliveries (the generic cell rate algorithm). The zero value is an endpoint that
// has had none.
type Pace struct {
	// Until is when the deliveries so far would end at the average rate.
	Until time.Time
}

// Next is when the next delivery is due, now or later.
func (p *Pace) Next(now time.Time) time.Time {
	if p.Until.Before(now) {
		p.Until = now
	}
	due := p.Until.Add(-deliveryBurst * deliveryInterval)
	p.Until = p.Until.Add(deliveryInterval)
	if due.Before(now) {
		return now
	}
	return due
}
