package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Batches makes many intents in one request, and has what a wallet sends for them. A batch is named by its id.
type Batches struct{ c *Client }

const (
	// maxBatch is how many intents a batch may have.
	maxBatch = 100
	// maxBatchBytes bounds the body of a request for a batch.
	maxBatchBytes = 64 << 10
)

// CreateBatch asks for intents that are recorded together.
type CreateBatch struct {
	// Transfers are as many as there are: a list that is too long for one batch makes several.
	Transfers []BatchItem `json:"transfers"`
	// IdempotencyKey names the list among the account's batches, so that asking again pays nobody twice. Empty lets the client make one, which
	// covers the tries of one call alone: give your own, so that a call that has failed in the middle can be repeated.
	IdempotencyKey string `json:"-"`
}

// BatchItem asks for one intent of a batch. Its members are as in CreateTransfer; a quote is used alone.
type BatchItem struct {
	Source      SourceRequest      `json:"source"`
	Destination DestinationRequest `json:"destination"`
	Deadline    time.Time          `json:"deadline,omitzero"`
	Reference   string             `json:"reference,omitempty"`
	Labels      map[string]string  `json:"labels,omitempty"`
}

// CreatedBatch is a batch as it was made. Transfers are in the order of the request.
type CreatedBatch struct {
	ID        string     `json:"id"`
	CreatedAt time.Time  `json:"createdAt"`
	Count     int        `json:"count"`
	Transfers []Transfer `json:"transfers"`
}

// Batch is a batch as it is now.
type Batch struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"createdAt"`
	// Count is how many intents it was made with.
	Count int `json:"count"`
	// Statuses is how many of its intents are in each status.
	Statuses map[TransferStatus]int `json:"statuses"`
	// Transfers are in the order of the request, without those that the service keeps no longer.
	Transfers []TransferSummary `json:"transfers"`
}

// Create records the intents of a list, and returns the batches that it made, in the order of the list.
//
// The intents of one batch are all recorded or none. A list of more than 100, or of more than 64 KiB or the account's limit let into one batch,
// makes several, one after the other, each with a key of its own: the list's key and "-1", "-2" and so on. A list of up to 100 has the key itself,
// and where it is cut all the same, the first of its batches has.
//
// Where a batch fails, nothing of it is recorded, unless the error is CodeOutcomeUnknown or there was no response, and none of those after it; those
// before it stay and are returned beside the error. Repeating the call with the same list and IdempotencyKey is safe: it gets the same batches
// again and makes the missing ones. CodeIdempotencyKeyReused means that the list is another one, or that the account's limit has changed, so that the
// list is cut elsewhere; then too nothing is made twice. CodeBatchRejected means that items are refused: [Error.BatchFailures] are all of its batch.
func (s *Batches) Create(ctx context.Context, create CreateBatch) ([]CreatedBatch, error) {
	key := cmp.Or(create.IdempotencyKey, rand.Text())
	items := make([]json.RawMessage, len(create.Transfers))
	for n, item := range create.Transfers {
		var err error
		if items[n], err = json.Marshal(item); err != nil {
			return nil, fmt.Errorf("write item %d of the batch: %w", n, err)
		}
	}
	var made []CreatedBatch
	for first, most := 0, maxBatch; first < len(items) || len(made) == 0; {
		part := items[first : first+fitting(items[first:], most)]
		partKey := key
		if len(items) > maxBatch || len(made) > 0 {
			partKey += "-" + strconv.Itoa(len(made)+1)
		}
		batch, err := call[CreatedBatch](ctx, s.c, request{
			method: http.MethodPost, path: "/v2/transfers/batch", idempotencyKey: partKey, body: map[string]any{"transfers": part},
		})
		if limit := batchLimit(err); limit > 0 && limit < len(part) {
			most = limit // the service has recorded nothing, so the same key stands for fewer items
			continue
		}
		if err != nil {
			return made, partError(err, first, len(part), len(items))
		}
		made, first = append(made, *batch), first+len(part)
	}
	return made, nil
}

// fitting is how many of the items make one batch of at most so many, one at least if there is any.
func fitting(items []json.RawMessage, most int) int {
	n, size := 0, len(`{"transfers":[]}`)
	for n < min(len(items), most) {
		if size += len(items[n]) + len(","); n > 0 && size > maxBatchBytes {
			break
		}
		n++
	}
	return n
}

// batchLimit is how many intents a batch of the account may have, if the error says that it had too many, or 0.
func batchLimit(err error) int {
	var failure *Error
	var details struct{ Max int }
	if !errors.Is(err, CodeBatchTooLarge) || !errors.As(err, &failure) || json.Unmarshal(failure.Details, &details) != nil {
		return 0
	}
	return details.Max
}

// partError says which part of a list an error is about.
func partError(err error, first, count, all int) error {
	var failure *Error
	if count == all || !errors.As(err, &failure) {
		return err
	}
	failure.firstItem = first
	return fmt.Errorf("items %d to %d of the list: %w", first, first+count-1, err)
}

// Get reads a batch.
func (s *Batches) Get(ctx context.Context, id string) (*Batch, error) {
	return call[Batch](ctx, s.c, request{method: http.MethodGet, path: batchPath(id, "")})
}

// CallsQuery says what the calls of a batch are for.
type CallsQuery struct {
	// MaxCalls is how many calls the wallet takes in one request, 2 to 200. 0 is the service's default of 10, which every wallet takes that takes any.
	MaxCalls int
}

// BatchCalls is what a wallet sends for a batch.
type BatchCalls struct {
	// Requests are in the order in which to send them.
	Requests []BatchCallsRequest `json:"requests"`
	// Excluded are the intents that Requests do not pay for: of each that can still be sent, sign the Tx of its record.
	Excluded []ExcludedTransfer `json:"excluded"`
}

// BatchCallsRequest is one request of wallet_sendCalls.
type BatchCallsRequest struct {
	// Transfers are the ids of the intents that it pays for. Calls has the call of each in this order, and approvals before those that need them.
	Transfers []string  `json:"transfers"`
	Calls     SendCalls `json:"calls"`
}

// ExcludedTransfer is an intent of a batch that its calls do not pay for.
type ExcludedTransfer struct {
	ID     string          `json:"id"`
	Reason ExclusionReason `json:"reason"`
}

// ExclusionReason is why the calls of a batch do not pay for an intent.
type ExclusionReason string

// Reasons, of which the first that applies is told.
const (
	// ExcludedSigning is of an intent that its user signs in place of sending a transaction.
	ExcludedSigning ExclusionReason = "SIGNING"
	// ExcludedStatus is of an intent that is not created any more, or has no Tx.
	ExcludedStatus ExclusionReason = "STATUS"
	// ExcludedNative is of a payment of the native asset, of which a batch leaves no log by which it could be found.
	ExcludedNative ExclusionReason = "NATIVE"
	// ExcludedExpiresSoon is of an intent whose deadline is less than a minute away.
	ExcludedExpiresSoon ExclusionReason = "EXPIRES_SOON"
)

// Calls returns what a wallet sends for the intents of a batch that are not paid for yet.
func (s *Batches) Calls(ctx context.Context, id string, query CallsQuery) (*BatchCalls, error) {
	values := url.Values{}
	if query.MaxCalls != 0 {
		values.Set("max-calls", strconv.Itoa(query.MaxCalls))
	}
	return call[BatchCalls](ctx, s.c, request{method: http.MethodGet, path: batchPath(id, "/calls"), query: values})
}

// ReportBatchTransaction is the body of Report.
type ReportBatchTransaction struct {
	Hash      string   `json:"hash"`
	Transfers []string `json:"transfers,omitempty"`
}

// Report tells the hash of a transaction that has paid for intents of a batch: those with the ids, or all of the batch if none is given. It is told
// for all of these or for none, and tried once. CodeStatusConflict means that some may not have it: [Error.BatchFailures]. CodeBatchNotUniform means
// that they have several source accounts: name those that the transaction has paid for.
func (s *Batches) Report(ctx context.Context, id, hash string, transfers ...string) (*Batch, error) {
	body := ReportBatchTransaction{Hash: hash, Transfers: transfers}
	return call[Batch](ctx, s.c, request{method: http.MethodPost, path: batchPath(id, "/transaction"), body: body})
}

// BatchFailure is what an item of a batch would be refused with alone.
type BatchFailure struct {
	// Index is the place of the item, from 0, in the list that was given to Create, or in the batch of a Report.
	Index   int    `json:"index"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// BatchFailures are the items because of which a batch was refused, ascending, for CodeBatchRejected and for CodeStatusConflict of a batch; none
// for other errors. Of a list that makes several batches, they are those of one.
func (e *Error) BatchFailures() []BatchFailure {
	var details struct{ Failures []BatchFailure }
	if json.Unmarshal(e.Details, &details) != nil {
		return nil
	}
	for n := range details.Failures {
		details.Failures[n].Index += e.firstItem
	}
	return details.Failures
}

func batchPath(id, rest string) string { return "/v2/batches/" + url.PathEscape(id) + rest }
