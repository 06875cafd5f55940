package wire

import (
	"net/netip"
	"time"

	"intents.internal/pkg/network"
)

// Headers between gateway and core. The gateway builds every upstream request itself, so a client cannot set them.
const (
	HeaderRequestID     = "X-Request-Id"
	HeaderAccountID     = "X-Account-Id"
	HeaderKeyID         = "X-Key-Id"
	HeaderKeyEnv        = "X-Key-Env"
	HeaderGatewaySecret = "X-Gateway-Secret"
	// HeaderTraceDecided is there where a gateway has decided whether the trace of traceparent is sampled. Without it that
	// is what the client would like.
	HeaderTraceDecided = "X-Trace-Decided"
	// HeaderEnforcesRestrictions is there in the calls of gateways that enforce VerifiedKey's Scopes and Networks. For all others core
	// refuses the keys that have any, since a gateway of an earlier release would let them do everything.
	HeaderEnforcesRestrictions = "X-Enforces-Restrictions"
	// HeaderPollWait is core's, on an empty page of events whose request may wait: how many whole seconds the gateway may hold
	// the page back for an event. The gateway passes it on to no client.
	HeaderPollWait = "X-Poll-Wait"
)

// Paths of core's internal API. Every call has HeaderGatewaySecret.
const (
	PathVerifyKey  = "/internal/keys/verify"
	PathKeyChanges = "/internal/key-changes"
	PathKeyFilter  = "/internal/key-filter"
	PathUsage      = "/internal/usage"
	// PathEventAccounts answers with EventAccounts once there is one above the position "after", or after the duration "wait",
	// at most MaxEventAccountsWait. Without "after" it answers at once with the present position. Where core cannot say who has
	// events above "after" it answers 410 CURSOR_EXPIRED.
	PathEventAccounts = "/internal/event-accounts"
	// PathChains answers as /v2/chains does; gateways of the previous release ask here.
	PathChains = "/internal/chains"
	// PathReady answers 204 while core can work and will go on to, else 503.
	PathReady = "/internal/ready"
)

// VerifyKeyRequest asks whether the key with this hash may be used.
type VerifyKeyRequest struct {
	// Hash is the SHA-256 of the whole key in lower-case hexadecimal.
	Hash string `json:"hash"`
}

// VerifiedKey is the answer for a key that may be used. Every other key is answered with 404 INVALID_API_KEY.
type VerifiedKey struct {
	KeyID       string              `json:"keyId"`
	AccountID   string              `json:"accountId"`
	Environment network.Environment `json:"environment"`
	// ExpiresAt is the moment from which the key is refused, null for never.
	ExpiresAt *time.Time `json:"expiresAt"`
	Limit     KeyLimit   `json:"limit"`
	// AccountLimit is the limit of all keys of the account in this environment together. A core of a release without it sends
	// none: then the account has no limit.
	AccountLimit KeyLimit `json:"accountLimit,omitzero"`
	// LimitBucket is the UUID of the bucket the key spends: its own id, or its predecessor's bucket where it came of a
	// rotation.
	LimitBucket string `json:"limitBucket"`
	// Scopes are the names of what the key may do. Absent is everything; a name that the gateway does not know allows nothing.
	Scopes []string `json:"scopes,omitempty"`
	// Networks are those that the key may be used from. Absent is any.
	Networks []netip.Prefix `json:"networks,omitempty"`
}

// KeyLimit is a bucket of Requests that refills continuously at Requests per PeriodSeconds.
type KeyLimit struct {
	Requests      int `json:"requests"`
	PeriodSeconds int `json:"periodSeconds"`
}

// KeyChanges lists the hashes (lower-case hexadecimal) of keys whose verdict may have changed since the cursor that
// was asked with, and the cursor to ask with next.
type KeyChanges struct {
	Cursor string   `json:"cursor"`
	Hashes []string `json:"hashes"`
}

// KeyFilter tells which keys exist, so that gateways refuse others without asking core.
type KeyFilter struct {
	// Filter is an apikey.Filter. It has every key that was there at the Cursor, usable or not; the changes since tell those
	// made later.
	Filter []byte `json:"filter"`
	Cursor string `json:"cursor"`
}

// MaxEventAccountsWait is the longest wait that PathEventAccounts takes.
const MaxEventAccountsWait = 5 * time.Second

// EventAccounts tells gateways whose waiting requests to wake.
type EventAccounts struct {
	// Position is the decimal position in the feed to ask with next.
	Position string `json:"position"`
	// Accounts are those with events above the position that was asked with, each account and environment once.
	Accounts []EventAccount `json:"accounts"`
}

// EventAccount is an account and the environment of its events.
type EventAccount struct {
	AccountID   string              `json:"accountId"`
	Environment network.Environment `json:"environment"`
}

// MaxUsageRows is how many rows a usage report may have.
const MaxUsageRows = 1000

// UsageReport tells what became of the requests of some keys. A report is stored once however often it arrives, so it
// is sent again, unchanged, until it is answered: 204 when it is stored, 400 when it never can be.
type UsageReport struct {
	// ReportID is a UUID.
	ReportID string     `json:"reportId"`
	Keys     []KeyUsage `json:"keys"`
}

// KeyUsage counts one key's requests in one minute since the last report. A report has one row for a key and minute.
type KeyUsage struct {
	KeyID string `json:"keyId"`
	// Minute is the start of the minute, UTC.
	Minute time.Time `json:"minute"`
	// Accepted passed every check of the gateway, Limited were refused with 429, and Refused were turned
	// away by the gateway for another reason.
	Accepted int64 `json:"accepted"`
	Limited  int64 `json:"limited"`
	Refused  int64 `json:"refused"`
	// LastUsedAt is when the latest of them arrived.
	LastUsedAt time.Time `json:"lastUsedAt"`
}
