package provider

// The encodings of interoperable addresses.
var (
	Interoperable      = interoperable
	ParseInteroperable = parseInteroperable
)

// The bounds of calls in flight and of the circuit breaker.
const (
	MaxInFlight   = maxInFlight
	MaxPerAccount = maxPerAccount
	TripAfter     = tripAfter
	OpenFor       = openFor
)
