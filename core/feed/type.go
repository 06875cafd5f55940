package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Type is the type of an event: a subject and a verb.
type Type string

// The types in the feed, and TypeWebhookTest, which is sent to one endpoint and is not in the feed.
const (
	TypeTransferCreated     Type = "transfer.created"
	TypeTransferSubmitted   Type = "transfer.submitted"
	TypeTransferConfirmed   Type = "transfer.confirmed"
	TypeTransferFilled      Type = "transfer.filled"
	TypeTransferRefunded    Type = "transfer.refunded"
	TypeTransferFailed      Type = "transfer.failed"
	TypeTransferExpired     Type = "transfer.expired"
	TypeTransferCancelled   Type = "transfer.cancelled"
	TypeTransferReorganized Type = "transfer.reorganized"
	TypeTransferRefundable  Type = "transfer.refundable"
	TypeTransferUpdated     Type = "transfer.updated"
	TypeWebhookDisabled     Type = "webhook.disabled"
	TypeWebhookTest         Type = "webhook.test"
)

// types are the types in the feed.
var types = []Type{
	TypeTransferCreated, TypeTransferSubmitted, TypeTransferConfirmed, TypeTransferFilled, TypeTransferRefunded, TypeTransferFailed,
	TypeTransferExpired, TypeTransferCancelled, TypeTransferReorganized, TypeTransferRefundable,
	TypeTransferUpdated, TypeWebhookDisabled,
}

// Types returns the types in the feed.
func Types() []Type { return slices.Clone(types) }

// Patterns returns the patterns of NewFilter that select the types of one subject, and types that are added to it later.
func Patterns() (patterns []string) {
	for _, t := range types {
		subject, _, _ := strings.Cut(string(t), ".")
		if pattern := subject + ".*"; !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// Filter selects types in the feed. The zero value selects all.
type Filter struct {
	// selected is nil for all types, otherwise sorted without duplicates.
	selected []Type
}

// ParseFilter parses comma-separated patterns: see NewFilter.
func ParseFilter(text string) (Filter, error) { return NewFilter(strings.Split(text, ",")) }

// NewFilter selects the types that match one of the patterns: a type, a subject and ".*", or "*". It returns an error for a
// pattern that matches no type in the feed, and if there is no pattern.
func NewFilter(patterns []string) (Filter, error) {
	if len(patterns) == 0 {
		return Filter{}, errors.New("names no type")
	}
	var f Filter
	for _, pattern := range patterns {
		before := len(f.selected)
		for _, t := range types {
			if matches(pattern, t) {
				f.selected = append(f.selected, t)
			}
		}
		if len(f.selected) == before {
			return Filter{}, fmt.Errorf("names the unknown type %q", pattern)
		}
	}
	slices.Sort(f.selected)
	f.selected = slices.Compact(f.selected)
	if len(f.selected) == len(types) {
		f.selected = nil
	}
	return f, nil
}

// MatchAny reports whether one of the patterns of NewFilter matches a type, which this release need not know, and neither the pattern.
func MatchAny(patterns []string, t Type) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, t) })
}

func matches(pattern string, t Type) bool {
	subject, _, _ := strings.Cut(string(t), ".")
	return pattern == "*" || pattern == subject+".*" || pattern == string(t)
}

// Types returns the types that the filter selects, nil for all. The caller must not modify them.
func (f Filter) Types() []Type { return f.selected }
