package apikey

import "fmt"

// Scopes is the set of operations that a key allows. The zero value allows nothing.
type Scopes uint8

// The scopes of a key.
const (
	// IntentsRead allows reading intents and events.
	IntentsRead Scopes = 1 << iota
	// IntentsWrite allows creating and changing intents.
	IntentsWrite
	// Webhooks allows reading and changing webhooks.
	Webhooks

	AllScopes = IntentsRead | IntentsWrite | Webhooks
)

// scopeNames are the names by bit.
var scopeNames = [...]string{"intents:read", "intents:write", "webhooks"}

// ParseScopes parses scope names, in any order. An empty list is the zero value.
func ParseScopes(names []string) (Scopes, error) {
	var s Scopes
	for _, name := range names {
		scope := ScopeOf(name)
		if scope == 0 {
			return 0, fmt.Errorf("%.40q is no scope", name)
		}
		s |= scope
	}
	return s, nil
}

// ScopeOf returns the scope of this name, zero if there is none.
func ScopeOf(name string) Scopes {
	for bit, known := range scopeNames {
		if name == known {
			return 1 << bit
		}
	}
	return 0
}

// Has reports whether s contains all needed scopes.
func (s Scopes) Has(needed Scopes) bool { return s&needed == needed }

// Names returns the names of the scopes, always in the same order.
func (s Scopes) Names() []string {
	names := make([]string, 0, len(scopeNames))
	for bit, name := range scopeNames {
		if s.Has(1 << bit) {
			names = append(names, name)
		}
	}
	return names
}
