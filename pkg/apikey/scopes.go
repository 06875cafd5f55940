package apikey

import "fmt"

// Scopes is what a key may do. The zero value is nothing.
type Scopes uint8

// The scopes of a key.
const (
	// IntentsRead lets a key read intents and events.
	IntentsRead Scopes = 1 << iota
	// IntentsWrite lets a key make and change intents.
	IntentsWrite
	// Webhooks lets a key read and change webhooks.
	Webhooks

	AllScopes = IntentsRead | IntentsWrite | Webhooks
)

// scopeNames are the names by bit.
var scopeNames = [...]string{"intents:read", "intents:write", "webhooks"}

// ParseScopes reads names of scopes, in any order. Of none it makes the zero value.
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

// ScopeOf is the scope of this name, zero for none.
func ScopeOf(name string) Scopes {
	for bit, known := range scopeNames {
		if name == known {
			return 1 << bit
		}
	}
	return 0
}

// Has reports whether all of the needed scopes are set.
func (s Scopes) Has(needed Scopes) bool { return s&needed == needed }

// Names are the names of the scopes, always in the same order.
func (s Scopes) Names() []string {
	names := make([]string, 0, len(scopeNames))
	for bit, name := range scopeNames {
		if s.Has(1 << bit) {
			names = append(names, name)
		}
	}
	return names
}
