package transfer

import (
	"errors"
	"time"

	"intents.internal/pkg/wire"
)

// ErrTooManyLabels is returned for an update after which an intent would have more than wire.MaxLabels labels.
var ErrTooManyLabels = errors.New("the intent would have too many labels")

// Naming is what a client calls an intent, and may change at any time.
type Naming struct {
	// Reference and Labels are empty for none.
	Reference string
	Labels    wire.Labels
}

// Update changes the reference and the labels of an intent and returns the event to write with it, and what it was called before. changed is
// false, and nothing is changed, if the intent is called so already. It returns ErrTooManyLabels.
func (i *Intent) Update(u wire.TransferUpdate, at time.Time) (event Event, before Naming, changed bool, err error) {
	before = Naming{Reference: i.Reference, Labels: i.Labels}
	after := before
	if u.Reference != nil {
		after.Reference = *u.Reference
	}
	var ok bool
	if after.Labels, ok = i.Labels.Update(u); !ok {
		return Event{}, before, false, ErrTooManyLabels
	}
	if after == before {
		return Event{}, before, false, nil
	}
	i.Reference, i.Labels, i.UpdatedAt = after.Reference, after.Labels, at
	return Event{
		TransferID: i.ID, AccountID: i.AccountID, Trigger: Update, From: i.Status, To: i.Status, Hash: i.Hash, Failure: Failure(i.Failure),
		Simulated: i.Simulated, At: at,
	}, before, true, nil
}

// first is what the intent was called when it was created.
func (i *Intent) first() Naming {
	if i.First != nil {
		return *i.First
	}
	return Naming{Reference: i.Reference, Labels: i.Labels}
}
