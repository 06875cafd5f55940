// Package transfertest has the JSON of package transfer as structs for encoding/json, with which tests compare what is
// appended, and random intents to do it with.
package transfertest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// HexBytes are written as 0x and lower-case hexadecimal digits.
type HexBytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b HexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode([]byte("0x"), b), nil }

// Timestamp writes a time with milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Optional is nil, which JSON writes as null, for an empty text.
func Optional[Text ~string](s Text) *Text {
	if s == "" {
		return nil
	}
	return &s
}

// Summary is the summary of an intent.
type Summary struct {
	ID          string          `json:"id"`
	Type        transfer.Type   `json:"type"`
	Status      transfer.Status `json:"status"`
	OrderID     HexBytes        `json:"orderId"`
	CreatedAt   string          `json:"createdAt"`
	UpdatedAt   string          `json:"updatedAt"`
	Metadata    Metadata        `json:"metadata"`
	Environment string          `json:"environment"`
	Source      Leg             `json:"source"`
	Destination Leg             `json:"destination"`
	Deadline    string          `json:"deadline"`
	Reference   *string         `json:"reference"`

	Labels map[string]string `json:"labels"`

	BatchID *string `json:"batchId"`
	Signing *string `json:"signing"`
	Ended   bool    `json:"ended"`
}

// Leg is one side of an intent.
type Leg struct {
	Account string `json:"account"`
	Token   string `json:"token"`
	Amount  string `json:"amount"`
}

func newLeg(l transfer.SummaryLeg) Leg {
	return Leg{
		Account: caip.AccountID{Chain: l.Chain, Address: l.Account}.String(), Token: caip.AccountID{Chain: l.Chain, Address: l.Token}.String(),
		Amount: l.Amount,
	}
}

// Metadata is the source chain of an intent and the transaction that carries it.
type Metadata struct {
	ChainID string `json:"chainId"`
	Hash    string `json:"hash,omitempty"`
}

// NewSummary is the summary of an intent.
func NewSummary(t transfer.Summary) Summary {
	return Summary{
		ID: t.ID.String(), Type: t.Type, Status: t.Status, OrderID: t.OrderID[:],
		CreatedAt: Timestamp(t.CreatedAt), UpdatedAt: Timestamp(t.UpdatedAt),
		Metadata: Metadata{ChainID: t.Source.Chain.String(), Hash: t.Hash}, Environment: string(t.Environment),
		Source: newLeg(t.Source), Destination: newLeg(t.Destination), Deadline: Timestamp(t.Deadline), Reference: Optional(t.Reference),
		Labels: t.Labels.Pairs(), BatchID: batchID(t.BatchID), Signing: Optional(string(t.Signing)), Ended: transfer.Ended(t.Type, t.Status),
	}
}

func batchID(id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	text := id.String()
	return &text
}

// FailureReason explains a failure.
type FailureReason struct {
	Message     string  `json:"message"`
	Hash        string  `json:"hash"`
	BlockNumber *uint64 `json:"blockNumber"`
	Expected    *string `json:"expected"`
	Found       *string `json:"found"`
}

// NewFailureReason is nil for none.
func NewFailureReason(r *transfer.FailureReason) *FailureReason {
	if r == nil {
		return nil
	}
	out := &FailureReason{Message: r.Message, Hash: r.Hash, Expected: Optional(r.Expected), Found: Optional(r.Found)}
	if r.Block != nil {
		out.BlockNumber = &r.Block.Number
	}
	return out
}

// Tx is a transaction.
type Tx struct {
	ChainID    json.Number `json:"chainId"`
	From       string      `json:"from"`
	To         string      `json:"to"`
	Value      string      `json:"value"`
	Data       HexBytes    `json:"data"`
	Allowances []Allowance `json:"allowances"`
	Calls      SendCalls   `json:"calls"`
}

// Allowance is an ERC-20 allowance and the calls that grant and reset it.
type Allowance struct {
	Token   string `json:"token"`
	Owner   string `json:"owner"`
	Spender string `json:"spender"`
	Amount  string `json:"amount"`
	Approve Call   `json:"approve"`
	Reset   Call   `json:"reset"`
}

// Call is a call of a transaction.
type Call struct {
	To    string   `json:"to"`
	Value string   `json:"value"`
	Data  HexBytes `json:"data"`
}

// SendCalls is the parameter of wallet_sendCalls (EIP-5792).
type SendCalls struct {
	Version        string `json:"version"`
	ChainID        string `json:"chainId"`
	From           string `json:"from"`
	AtomicRequired bool   `json:"atomicRequired"`
	Calls          []Call `json:"calls"`
}

// NewTx is nil for no transaction.
func NewTx(tx *transfer.Tx) *Tx {
	if tx == nil {
		return nil
	}
	number, _ := tx.Chain.Number()
	out := &Tx{
		ChainID: json.Number(tx.Chain.Reference), From: tx.From, To: tx.To, Value: tx.Value.String(), Data: tx.Data,
		Allowances: []Allowance{},
		Calls:      SendCalls{Version: "2.0.0", ChainID: fmt.Sprintf("%#x", number), From: tx.From},
	}
	for _, a := range tx.Allowances {
		out.Allowances = append(out.Allowances, Allowance{
			Token: a.Token.String(), Owner: a.Owner, Spender: a.Spender, Amount: a.Amount.String(),
			Approve: Call{To: a.Approve.To, Value: a.Approve.Value.String(), Data: a.Approve.Data},
			Reset:   Call{To: a.Reset.To, Value: a.Reset.Value.String(), Data: a.Reset.Data},
		})
	}
	for _, c := range tx.Calls() {
		out.Calls.Calls = append(out.Calls.Calls, Call{To: c.To, Value: fmt.Sprintf("%#x", c.Value), Data: c.Data})
	}
	return out
}

// Text draws text of any bytes, of those that JSON escapes in particular.
func Text() *rapid.Generator[string] {
	awkward := []string{"", "\x00", "\t", "\n", "\x1f", "\"", "\\", "<", ">", "&", "\x7f", "\u0080", "\u2028", "\u2029", "\ufffd", "é", "😀", "\xff", "\xc3", "\xed\xa0\x80"}
	return rapid.Custom(func(t *rapid.T) string {
		part := rapid.OneOf(rapid.SampledFrom(awkward), rapid.StringMatching(`[ -~]{0,8}`))
		return strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "parts"), "")
	})
}

// Time draws a time of the years that JSON clients read.
func Time() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		seconds := rapid.Int64Range(0, 253402300799).Draw(t, "seconds") // up to the end of 9999
		nanoseconds := rapid.OneOf(rapid.SampledFrom([]int64{0, 999_999, 1_000_000, 999_999_999}), rapid.Int64Range(0, 999_999_999)).Draw(t, "nanoseconds")
		zone := rapid.SampledFrom([]*time.Location{time.UTC, time.FixedZone("", 19800)}).Draw(t, "zone")
		return time.Unix(seconds, nanoseconds).In(zone)
	})
}

// Intent draws an intent, with an awkward reference and failure.
func Intent() *rapid.Generator[*transfer.Intent] {
	return rapid.Custom(func(t *rapid.T) *transfer.Intent {
		created := Time().Draw(t, "created")
		i := &transfer.Intent{
			ID: uuid.UUID(sized(16).Draw(t, "id")), OrderID: [32]byte(sized(32).Draw(t, "order id")),
			Environment: rapid.SampledFrom([]network.Environment{network.Test, network.Live}).Draw(t, "environment"),
			Type:        rapid.SampledFrom([]transfer.Type{transfer.Transfer, transfer.Swap, transfer.Bridge}).Draw(t, "type"),
			Status:      rapid.SampledFrom([]transfer.Status{transfer.Created, transfer.Submitted, transfer.Failed, transfer.Filled}).Draw(t, "status"),
			Source:      leg().Draw(t, "source"), Destination: leg().Draw(t, "destination"),
			Deadline: Time().Draw(t, "deadline"), Reference: Text().Draw(t, "reference"), Hash: Text().Draw(t, "hash"), Failure: Text().Draw(t, "failure"),
			Labels:  Labels().Draw(t, "labels"),
			BatchID: rapid.OneOf(rapid.Just(uuid.Nil), rapid.Just(uuid.Max)).Draw(t, "batch"),
			Signing: transfer.Signing{
				Scheme:   rapid.SampledFrom(append([]wire.SigningScheme{""}, wire.SigningSchemes...)).Draw(t, "signing"),
				SignedAt: rapid.OneOf(rapid.Just(time.Time{}), Time()).Draw(t, "signed at"),
			},
			CreatedAt: created, UpdatedAt: rapid.OneOf(rapid.Just(created), Time()).Draw(t, "updated"),
			Settlement: transfer.Settlement{
				Scheme: rapid.OneOf(rapid.Just(registry.StandardOrder), Text()).Draw(t, "scheme"), Expires: Time().Draw(t, "expires"),
			},
		}
		if i.Type != transfer.Transfer {
			s := &i.Settlement
			s.Deployment = Text().Draw(t, "deployment")
			s.InputSettler, s.OutputSettler = address().Draw(t, "input settler"), address().Draw(t, "output settler")
			s.InputOracle, s.OutputOracle = address().Draw(t, "input oracle"), address().Draw(t, "output oracle")
		}
		return i
	})
}

// Labels draws labels without characters that encoding/json escapes though JSON has them as they are.
func Labels() *rapid.Generator[wire.Labels] {
	return rapid.Map(rapid.MapOfN(rapid.StringMatching(`[A-Za-z0-9._-]{1,40}`), rapid.StringMatching(`[a-z"\\ü😀 ]{1,200}`), 0, wire.MaxLabels), wire.NewLabels)
}

// Failed draws the explanation of a failure, nil for none.
func Failed() *rapid.Generator[*transfer.FailureReason] {
	return rapid.Custom(func(t *rapid.T) *transfer.FailureReason {
		if rapid.Bool().Draw(t, "no failure") {
			return nil
		}
		r := &transfer.FailureReason{
			Message: Text().Draw(t, "message"), Hash: Text().Draw(t, "failed hash"), Expected: Text().Draw(t, "expected"), Found: Text().Draw(t, "found"),
		}
		if rapid.Bool().Draw(t, "in a block") {
			r.Block = &transfer.Block{Number: rapid.Uint64().Draw(t, "block number")}
		}
		return r
	})
}

func sized(n int) *rapid.Generator[[]byte] { return rapid.SliceOfN(rapid.Byte(), n, n) }

func address() *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just("0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"), rapid.StringMatching(`0x[0-9a-fA-F]{40}`))
}

func leg() *rapid.Generator[transfer.Leg] {
	return rapid.Custom(func(t *rapid.T) transfer.Leg {
		chain := caip.EIP155Chain(rapid.Uint64Range(1, 1e16-1).Draw(t, "chain"))
		return transfer.Leg{
			Account: caip.AccountID{Chain: chain, Address: address().Draw(t, "account")},
			Token:   caip.AccountID{Chain: chain, Address: address().Draw(t, "token")},
			Amount:  new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "amount")),
		}
	})
}
