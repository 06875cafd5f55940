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
	// HeaderTraceDecided is set if a gateway has decided whether the trace of traceparent is sampled. Without it the sampled flag
	// is only the client's wish.
	HeaderTraceDecided = "X-Trace-Decided"
	// HeaderPollWait is set by core on an empty page of events whose request may wait: for how many whole seconds the gateway may
	// hold the response until there is an event. The gateway does not forward it to clients.
	HeaderPollWait = "X-Poll-Wait"
	// HeaderCore is set by core on each of its responses: CoreAnswered or CoreRefused. A response without it was made by a proxy between gateway
	// and core, which may have passed the request on, or by a core of release 0.1.0. The gateway does not forward it to clients.
	HeaderCore = "X-Core"
)

// What core says of a request in HeaderCore.
const (
	// CoreAnswered means that the response is the result of the request.
	CoreAnswered = "answered"
	// CoreRefused means that core has carried nothing of the request out, so that any request may be sent again, as after REFUSED_STREAM in HTTP/2
	// (RFC 9113, 8.7). The status says why: 401 if the request lacks the shared secret.
	CoreRefused = "refused"
)

// Paths of core's internal API. Every call has HeaderGatewaySecret.
const (
	PathVerifyKey  = "/internal/keys/verify"
	PathKeyChanges = "/internal/key-changes"
	PathKeyFilter  = "/internal/key-filter"
	PathUsage      = "/internal/usage"
	// PathEventAccounts responds with EventAccounts once there is one above the position "after", or after the duration "wait",
	// at most MaxEventAccountsWait. Without "after" it responds at once with the current position. If core cannot tell which
	// accounts have events above "after", it responds with 410 CURSOR_EXPIRED.
	PathEventAccounts = "/internal/event-accounts"
	// PathReady responds with 204 while core works and is not shutting down, else 503. HeaderBatch says that core serves PathBatch.
	PathReady = "/internal/ready"
)

// VerifyKeyRequest asks whether the key with this hash may be used.
type VerifyKeyRequest struct {
	// Hash is the SHA-256 of the whole key in lower-case hexadecimal.
	Hash string `json:"hash"`
}

// VerifiedKey is the response for a usable key. For every other key it is 404 INVALID_API_KEY.
type VerifiedKey struct {
	KeyID       string              `json:"keyId"`
	AccountID   string              `json:"accountId"`
	Environment network.Environment `json:"environment"`
	// ExpiresAt is the time from which the key is rejected, null for never.
	ExpiresAt *time.Time `json:"expiresAt"`
	Limit     KeyLimit   `json:"limit"`
	// AccountLimit is the limit of all keys of the account in this environment together.
	AccountLimit KeyLimit `json:"accountLimit"`
	// LimitBucket is the UUID of the bucket that the key uses: its own id, or its predecessor's bucket if it was created by a
	// rotation.
	LimitBucket string `json:"limitBucket"`
	// Scopes are the names of the key's scopes. Absent: all. A name that the gateway does not know allows nothing.
	Scopes []string `json:"scopes,omitempty"`
	// Networks are the networks that the key may be used from. Absent: any.
	Networks []netip.Prefix `json:"networks,omitempty"`
	// Origins are those of pages that may send the key's client tokens, as browsers write them. Absent: none.
	Origins []string `json:"origins,omitempty"`
}

// KeyLimit is a bucket of Requests that refills continuously at Requests per PeriodSeconds.
type KeyLimit struct {
	Requests      int `json:"requests"`
	PeriodSeconds int `json:"periodSeconds"`
}

// KeyChanges lists the hashes (lower-case hexadecimal) of keys whose verdict may have changed since the cursor of the request,
// and the cursor for the next request.
type KeyChanges struct {
	Cursor string   `json:"cursor"`
	Hashes []string `json:"hashes"`
}

// KeyFilter contains the existing keys, so that gateways reject others without a call to core.
type KeyFilter struct {
	// Filter is an apikey.Filter. It contains every key that existed at the Cursor, usable or not. Keys created later are in the
	// changes since.
	Filter []byte `json:"filter"`
	Cursor string `json:"cursor"`
}

// MaxEventAccountsWait is the longest wait that PathEventAccounts accepts.
const MaxEventAccountsWait = 5 * time.Second

// EventAccounts tells gateways for which accounts to wake long polls.
type EventAccounts struct {
	// Position is the decimal position in the feed for the next request.
	Position string `json:"position"`
	// Accounts have events above the position of the request; each account and environment is listed once.
	Accounts []EventAccount `json:"accounts"`
}

// EventAccount is an account and the environment of its events.
type EventAccount struct {
	AccountID   string              `json:"accountId"`
	Environment network.Environment `json:"environment"`
}

// MaxUsageRows is how many rows a usage report may have.
const MaxUsageRows = 1000

// UsageReport counts the requests of some keys by outcome. A report is stored once however often it arrives. The gateway resends
// it unchanged until core responds with 204, when it is stored, or 400, when it can never be.
type UsageReport struct {
	// ReportID is a UUID.
	ReportID string     `json:"reportId"`
	Keys     []KeyUsage `json:"keys"`
}

// KeyUsage counts one key's requests in one minute since the last report. A report has one row per key and minute.
type KeyUsage struct {
	KeyID string `json:"keyId"`
	// Minute is the start of the minute, UTC.
	Minute time.Time `json:"minute"`
	// Accepted requests passed every check of the gateway, Limited ones were rejected with 429, and Refused ones were rejected by
	// the gateway for another reason.
	Accepted int64 `json:"accepted"`
	Limited  int64 `json:"limited"`
	Refused  int64 `json:"refused"`
	// LastUsedAt is the arrival time of the latest request.
	LastUsedAt time.Time `json:"lastUsedAt"`
}
