package telemetry

import "log/slog"

const redacted = "[redacted]"

// Secret is a configured text that prints as [redacted] in every format. An empty one prints as empty, so that a missing setting
// is visible.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString redacts %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText redacts JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue redacts structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
