package wire

import (
	"fmt"
	"math"
	"strconv"
)

const (
	// MaxTransferBatchBytes bounds the body of POST /v2/transfers/batch; a longer one is rejected with PAYLOAD_TOO_LARGE.
	MaxTransferBatchBytes = 64 << 10
	// MaxTransferBatch is how many intents a batch may have; more are rejected with BATCH_TOO_LARGE.
	MaxTransferBatch = 100
	// maxBatchIssues is how many issues of a batch are told.
	maxBatchIssues = 20
)

// DecodeTransferBatch parses the body of POST /v2/transfers/batch as strictly as DecodeTransferRequest parses each of its items, which cannot
// have a quote. It returns the first issues in the order of the items, except that a JSON syntax error or a name that is given twice stands
// alone. The items are complete only if there are no issues, and may be more than MaxTransferBatch.
func DecodeTransferBatch(body []byte) ([]TransferRequest, []Issue) {
	d := newDecoder(body)
	defer d.release()
	d.most = maxBatchIssues
	var items []TransferRequest
	var item TransferRequest // one for all: a body may have thousands of malformed items
	noQuote := d.noQuote
	d.object(batchFields, len(batchFields), func(int) {
		count, ok := d.array(math.MaxInt, func() {
			item = TransferRequest{}
			d.transfer(&item, noQuote)
			if len(d.issues) == 0 { // a malformed item is as short as two bytes, and this many would take much memory
				items = append(items, item)
			}
		})
		if ok && count == 0 {
			d.issue(fmt.Sprintf("must have 1 to %d items", MaxTransferBatch))
		}
	})
	return items, d.finish()
}

var batchFields = []string{"transfers"}

func (d *decoder) noQuote(*string) {
	d.skip("must be left out: an intent of a quote is made alone, with POST /v2/transfers")
}

// BatchPath returns the JSON Pointer of a member of a batch's item.
func BatchPath(item int, path string) string { return "/transfers/" + strconv.Itoa(item) + path }

// MaxDetails are the details of BATCH_TOO_LARGE.
type MaxDetails struct {
	// Max is how many intents a batch of the account may have.
	Max int `json:"max"`
}

// NewBatchTooLarge returns the body of a 422 for a batch of more than so many intents.
func NewBatchTooLarge(most int) Error {
	return Error{
		Code: BatchTooLarge, Message: fmt.Sprintf("A batch must not have more than %d transfers; split it.", most), Details: MaxDetails{Max: most},
	}
}

// NewIdempotencyKeyRequired returns the body of a 400 for a batch without an Idempotency-Key.
func NewIdempotencyKeyRequired() Error {
	return Error{
		Code:    IdempotencyKeyRequired,
		Message: "A batch needs an Idempotency-Key header, so that a repeated request makes no payment twice.",
	}
}
