// Package representation is the JSON form of what the API's answers, the bodies of events and the console's scripts share: times,
// bytes, the summary of an intent and its transaction.
//
// It owns the names and the spelling of their members and decides nothing.
package representation

import (
	"encoding/hex"
	"time"

	"intents.internal/core/transfer"
)

// Timestamp is a time as ISO 8601 in UTC with milliseconds. It is a string, since the encoder validates the output of a MarshalText
// method again, which costs time in long lists.
type Timestamp string

// NewTimestamp writes a time, cut to milliseconds.
func NewTimestamp(t time.Time) Timestamp {
	return Timestamp(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// OptionalTimestamp is nil, which JSON writes as null, for no time.
func OptionalTimestamp(t *time.Time) *Timestamp {
	if t == nil {
		return nil
	}
	stamp := NewTimestamp(*t)
	return &stamp
}

// Optional is nil, which JSON writes as null, for an empty text.
func Optional[Text ~string](s Text) *Text {
	if s == "" {
		return nil
	}
	return &s
}

// HexBytes are written as 0x and lower-case hexadecimal digits.
type HexBytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b HexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode([]byte("0x"), b), nil }

// Summary is the part of an intent that lists and events show.
type Summary struct {
	ID          string          `json:"id"`
	Type        transfer.Type   `json:"type"`
	Status      transfer.Status `json:"status"`
	OrderID     HexBytes        `json:"orderId"`
	CreatedAt   Timestamp       `json:"createdAt"`
	UpdatedAt   Timestamp       `json:"updatedAt"`
	Metadata    Metadata        `json:"metadata"`
	Source      Amount          `json:"source"`
	Destination Amount          `json:"destination"`
	Reference   *string         `json:"reference"`
}

// Amount is one side of an intent in a summary, in the token's smallest unit.
type Amount struct {
	Amount string `json:"amount"`
}

// Metadata is the source chain of an intent and the transaction that carries it.
type Metadata struct {
	ChainID string `json:"chainId"`
	Hash    string `json:"hash,omitempty"`
}

// NewSummary writes the summary of an intent.
func NewSummary(t transfer.Summary) Summary {
	return Summary{
		ID: t.ID.String(), Type: t.Type, Status: t.Status, OrderID: t.OrderID[:],
		CreatedAt: NewTimestamp(t.CreatedAt), UpdatedAt: NewTimestamp(t.UpdatedAt),
		Metadata: Metadata{ChainID: t.Chain.String(), Hash: t.Hash},
		Source:   Amount{t.SourceAmount}, Destination: Amount{t.DestinationAmount}, Reference: Optional(t.Reference),
	}
}
