package event

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/representation"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// ID identifies an event for ever: however often it is read, delivered or given a position.
type ID uuid.UUID

// idPrefix is what the text form begins with.
const idPrefix = "evt_"

// NewID is the id of the nth event of an intent or of another subject: the UUIDv5 (RFC 9562, section 5.5) of the decimal n in the
// namespace of the subject's own id.
func NewID(subject uuid.UUID, n int64) ID {
	return ID(uuid.NewSHA1(subject, strconv.AppendInt(nil, n, 10)))
}

// ParseID reads the text form exactly; ok is false for anything else.
func ParseID(text string) (id ID, ok bool) {
	digits, prefixed := strings.CutPrefix(text, idPrefix)
	parsed, err := uuid.Parse(digits)
	if !prefixed || err != nil || parsed.String() != digits { // Parse takes other spellings too
		return ID{}, false
	}
	return ID(parsed), true
}

// String is the text form, evt_<uuid>.
func (id ID) String() string { return idPrefix + uuid.UUID(id).String() }

// Event is something that happened to an intent or a webhook of an account. Its JSON never changes.
type Event struct {
	ID   ID
	Type Type
	// Position is the place in the feed, 0 for an event that is not in it.
	Position    int64
	AccountID   uuid.UUID
	Environment network.Environment
	At          time.Time
	// Sequence counts the events of one intent from 1 without gaps. It is 0 for an event that is not an intent's.
	Sequence int
	// Transfer is what happened to an intent, nil for an event that is not an intent's.
	Transfer *Transition
	// Data is the data of an event that is not an intent's, as JSON.
	Data json.RawMessage
}

// Transition is what happened to an intent.
type Transition struct {
	// Summary is the intent as of the event.
	Summary transfer.Summary
	// From is empty for the first event of an intent.
	From, To transfer.Status
	// Failure is empty for an intent that did not fail.
	Failure transfer.Failure
}

// transitionJSON are the data of an intent's event. The reference is the summary's.
type transitionJSON struct {
	representation.Summary
	From    *transfer.Status  `json:"from"`
	To      transfer.Status   `json:"to"`
	Hash    *string           `json:"hash"`
	Failure *transfer.Failure `json:"failure"`
}

// bodyJSON is the body of a delivery; in the feed the event's id is before it.
type bodyJSON struct {
	Type        Type                     `json:"type"`
	Timestamp   representation.Timestamp `json:"timestamp"`
	Environment network.Environment      `json:"environment"`
	Sequence    *int                     `json:"sequence"`
	Data        any                      `json:"data"`
}

// Body is the JSON of the event without its id, as it is delivered.
func (e Event) Body() ([]byte, error) {
	return json.Marshal(e.body())
}

// MarshalJSON is the JSON of the event in the feed: its id and then the members of Body.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID string `json:"id"`
		bodyJSON
	}{e.ID.String(), e.body()})
}

func (e Event) body() bodyJSON {
	body := bodyJSON{Type: e.Type, Timestamp: representation.NewTimestamp(e.At), Environment: e.Environment, Data: e.Data}
	if e.Transfer == nil {
		return body
	}
	body.Sequence = &e.Sequence
	body.Data = transitionJSON{
		Summary: representation.NewSummary(e.Transfer.Summary),
		From:    representation.Optional(e.Transfer.From), To: e.Transfer.To,
		Hash: representation.Optional(e.Transfer.Summary.Hash), Failure: representation.Optional(e.Transfer.Failure),
	}
	return body
}
