package api

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/core/transfer/transfertest"
	"intents.internal/pkg/wire"
)

// intentJSON is the full record for encoding/json. Source and Destination replace those of the summary with more fields.
type intentJSON struct {
	transfertest.Summary
	Labels  map[string]string `json:"labels"`
	Final   bool              `json:"final"`
	Failure *string           `json:"failure"`

	FailureReason *transfertest.FailureReason `json:"failureReason"`

	Source        legJSON            `json:"source"`
	Destination   legJSON            `json:"destination"`
	Deadline      string             `json:"deadline"`
	Quote         *usedQuoteJSON     `json:"quote"`
	Order         *orderJSON         `json:"order"`
	Confirmations *confirmationsJSON `json:"confirmations"`
	Transactions  []transactionJSON  `json:"transactions"`
	Refundable    bool               `json:"refundable"`
	Verification  *string            `json:"verification"`
	Screened      bool               `json:"screened"`
	Watched       bool               `json:"watched"`
	Tx            *transfertest.Tx   `json:"tx"`
	Signing       *signingJSON       `json:"signing"`
}

// signingJSON has the typed data as they are appended, which go-ethereum reads in package transfer.
type signingJSON struct {
	Scheme    wire.SigningScheme      `json:"scheme"`
	TypedData json.RawMessage         `json:"typedData"`
	Digest    *transfertest.HexBytes  `json:"digest"`
	ExpiresAt string                  `json:"expiresAt"`
	Allowance *transfertest.Allowance `json:"allowance"`
	Permit    json.RawMessage         `json:"permit"`
	SignedAt  *string                 `json:"signedAt"`
	Submitted *submissionJSON         `json:"submitted"`
	Revoke    json.RawMessage         `json:"revoke"`
}

type submissionJSON struct {
	Provider string  `json:"provider"`
	Status   string  `json:"status"`
	At       string  `json:"at"`
	Detail   *string `json:"detail"`
}

func newSigningJSON(s *transfer.Signature) *signingJSON {
	if s == nil {
		return nil
	}
	out := &signingJSON{
		Scheme: s.Scheme, TypedData: transfer.AppendTypedData(nil, s.TypedData), ExpiresAt: transfertest.Timestamp(s.ExpiresAt),
		Permit: transfer.AppendTypedData(nil, s.Permit), Revoke: json.RawMessage("null"),
	}
	if digest := transfertest.HexBytes(s.Digest[:]); s.Digest != [32]byte{} {
		out.Digest = &digest
	}
	if s.Allowance != nil {
		out.Allowance = &transfertest.NewTx(&transfer.Tx{Call: s.Allowance.Approve, Allowances: []transfer.Allowance{*s.Allowance}}).Allowances[0]
	}
	if at := transfertest.Timestamp(s.SignedAt); !s.SignedAt.IsZero() {
		out.SignedAt = &at
	}
	if sent := s.Submitted; sent != nil {
		out.Submitted = &submissionJSON{sent.Provider, string(sent.Status), transfertest.Timestamp(sent.At), nil}
		if sent.Detail != "" {
			out.Submitted.Detail = &sent.Detail
		}
	}
	if s.Revoke != nil && s.Revoke.Tx != nil {
		out.Revoke = transfer.AppendTx(nil, s.Revoke.Tx)
	} else if s.Revoke != nil {
		out.Revoke = transfer.AppendTypedData(nil, s.Revoke.TypedData)
	}
	return out
}

type confirmationsJSON struct {
	Have      uint64 `json:"have"`
	Need      uint64 `json:"need"`
	Finalized bool   `json:"finalized"`
}

type transactionJSON struct {
	Role        transfer.Role         `json:"role"`
	ChainID     string                `json:"chainId"`
	Hash        transfertest.HexBytes `json:"hash"`
	State       transfer.State        `json:"state"`
	BlockNumber *uint64               `json:"blockNumber"`
	SeenAt      string                `json:"seenAt"`
	ExplorerURL *string               `json:"explorerUrl"`
}

type usedQuoteJSON struct {
	ID        string `json:"id"`
	Provider  string `json:"provider"`
	ExpiresAt string `json:"expiresAt"`
}

// orderJSON has every field of the order under its ABI name.
type orderJSON struct {
	Scheme        string                `json:"scheme"`
	Deployment    *string               `json:"deployment"`
	InputSettler  string                `json:"inputSettler"`
	User          string                `json:"user"`
	Nonce         string                `json:"nonce"`
	OriginChainID uint64                `json:"originChainId"`
	Expires       uint32                `json:"expires"`
	FillDeadline  uint32                `json:"fillDeadline"`
	InputOracle   string                `json:"inputOracle"`
	Inputs        []inputJSON           `json:"inputs"`
	Outputs       []outputJSON          `json:"outputs"`
	Encoded       transfertest.HexBytes `json:"encoded"`
}

type inputJSON struct {
	Token  string `json:"token"`
	Amount string `json:"amount"`
}

type outputJSON struct {
	Oracle       transfertest.HexBytes `json:"oracle"`
	Settler      transfertest.HexBytes `json:"settler"`
	ChainID      uint64                `json:"chainId"`
	Token        transfertest.HexBytes `json:"token"`
	Amount       string                `json:"amount"`
	Recipient    transfertest.HexBytes `json:"recipient"`
	CallbackData transfertest.HexBytes `json:"callbackData"`
	Context      transfertest.HexBytes `json:"context"`
}

// newOrderJSON is nil for no order.
func newOrderJSON(o *transfer.Order, s transfer.Settlement) *orderJSON {
	if o == nil {
		return nil
	}
	return &orderJSON{
		Scheme: s.Scheme, Deployment: transfertest.Optional(s.Deployment), InputSettler: o.InputSettler, User: o.User,
		Nonce: o.Nonce.String(), OriginChainID: o.OriginChainID, Expires: o.Expires, FillDeadline: o.FillDeadline, InputOracle: o.InputOracle,
		Inputs: []inputJSON{{o.Input.Token, o.Input.Amount.String()}},
		Outputs: []outputJSON{{
			Oracle: o.Output.Oracle[:], Settler: o.Output.Settler[:], ChainID: o.Output.ChainID, Token: o.Output.Token[:],
			Amount: o.Output.Amount.String(), Recipient: o.Output.Recipient[:],
		}},
		Encoded: o.Encoded,
	}
}

func newIntentJSON(r *intents.Record) intentJSON {
	i := r.Intent
	out := intentJSON{
		Summary: transfertest.NewSummary(i.Summary()),
		Labels:  i.Labels.Pairs(),
		Final:   transfer.Final(i.Type, i.Status), Failure: transfertest.Optional(i.Failure),
		FailureReason: transfertest.NewFailureReason(r.FailureReason),
		Source:        newLegJSON(i.Source), Destination: newLegJSON(i.Destination), Deadline: transfertest.Timestamp(i.Deadline),
		Order: newOrderJSON(r.Order, i.Settlement),
		Tx:    transfertest.NewTx(r.Tx), Transactions: []transactionJSON{}, Refundable: r.Refundable, Signing: newSigningJSON(r.Signature),
	}
	if q := i.Quote; q.ID != uuid.Nil {
		out.Quote = &usedQuoteJSON{q.ID.String(), q.Provider, transfertest.Timestamp(q.ExpiresAt)}
	}
	if c := r.Confirmations; c != nil {
		out.Confirmations = &confirmationsJSON{c.Have, c.Need, c.Finalized}
	}
	if r.Unverifiable {
		unsupported := "unsupported"
		out.Verification = &unsupported
	}
	for _, t := range r.Transactions {
		shown := transactionJSON{Role: t.Role, ChainID: t.Chain.String(), Hash: t.Hash[:], State: t.State, SeenAt: transfertest.Timestamp(t.SeenAt), ExplorerURL: transfertest.Optional(t.ExplorerURL)}
		if t.Block != nil {
			shown.BlockNumber = &t.Block.Number
		}
		out.Transactions = append(out.Transactions, shown)
	}
	return out
}

// anyRecord draws a record of an intent.
func anyRecord(t *rapid.T) *intents.Record {
	i := transfertest.Intent().Draw(t, "intent")
	token := registry.Token{EIP2612: &registry.EIP712Domain{Name: "Coin", Version: "1"}}
	if rapid.Bool().Draw(t, "authorizes") {
		token.ERC3009 = &registry.ERC3009{Name: "Coin", Version: "2", Form: registry.BytesForm}
	}
	at := transfer.Moment{Now: i.Deadline.Add(-time.Hour), BlockTime: time.Second, Token: token}
	if rapid.Bool().Draw(t, "cancelled") {
		i.Status = transfer.Cancelled
	}
	if rapid.Bool().Draw(t, "submitted") {
		i.Signing.Submitted = &transfer.Submission{
			Provider: "solver", Status: transfer.SubmissionRejected, At: transfertest.Time().Draw(t, "submitted at"), Detail: rapid.SampledFrom([]string{"", "no"}).Draw(t, "detail"),
		}
	}
	r, err := intents.NewRecord(i, at)
	if err == nil && r.Signature != nil {
		r.Signature.Permit, err = i.PermitOf(r.Signature.Allowance, at, big.NewInt(7))
	}
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "quoted") {
		i.Quote = transfer.Quote{ID: i.ID, Provider: "solver", ExpiresAt: transfertest.Time().Draw(t, "expires")}
	}
	r.FailureReason = transfertest.Failed().Draw(t, "failure reason")
	r.Refundable, r.Unverifiable = rapid.Bool().Draw(t, "refundable"), rapid.Bool().Draw(t, "unverifiable")
	if rapid.Bool().Draw(t, "in a block") {
		r.Confirmations = &transfer.Confirmations{Have: rapid.Uint64().Draw(t, "have"), Need: 3, Finalized: rapid.Bool().Draw(t, "finalized")}
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "transactions") {
		shown := intents.ShownTransaction{Transaction: transfer.Transaction{
			Role: transfer.RoleOpen, Chain: i.Source.Account.Chain, Hash: common.Hash{byte(n)}, State: transfer.Mined,
			SeenAt: transfertest.Time().Draw(t, "seen"),
		}, ExplorerURL: rapid.SampledFrom([]string{"", "https://etherscan.io/tx/0x00"}).Draw(t, "explorer URL")}
		if n > 0 {
			shown.Block = &transfer.Block{Number: rapid.Uint64().Draw(t, "block")}
		}
		r.Transactions = append(r.Transactions, shown)
	}
	return r
}

func TestRecord_Append(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord(t)
		want, err := json.Marshal(newIntentJSON(r))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(appendRecord(nil, r))); diff != "" {
			t.Fatalf("(-encoding/json +appended):\n%s", diff)
		}
	})
}
