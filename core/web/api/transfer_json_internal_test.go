package api

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"intents.internal/core/intent"
	"intents.internal/core/intent/representation/representationtest"
	"intents.internal/core/intent/transfer"
)

// intentJSON is the full record for encoding/json. Source and Destination replace those of the summary with more fields.
type intentJSON struct {
	representationtest.Summary
	Final         bool                   `json:"final"`
	Failure       *string                `json:"failure"`
	Source        legJSON                `json:"source"`
	Destination   legJSON                `json:"destination"`
	Deadline      string                 `json:"deadline"`
	Order         orderJSON              `json:"order"`
	Confirmations *confirmationsJSON     `json:"confirmations"`
	Transactions  []transactionJSON      `json:"transactions"`
	Refundable    bool                   `json:"refundable"`
	Verification  *string                `json:"verification"`
	Tx            *representationtest.Tx `json:"tx"`
}

type confirmationsJSON struct {
	Have      uint64 `json:"have"`
	Need      uint64 `json:"need"`
	Finalized bool   `json:"finalized"`
}

type transactionJSON struct {
	Role        transfer.Role               `json:"role"`
	ChainID     string                      `json:"chainId"`
	Hash        representationtest.HexBytes `json:"hash"`
	State       transfer.State              `json:"state"`
	BlockNumber *uint64                     `json:"blockNumber"`
	SeenAt      string                      `json:"seenAt"`
}

type legJSON struct {
	Account string `json:"account"`
	Token   string `json:"token"`
	Amount  string `json:"amount"`
}

// orderJSON has every field of OrderData under its ABI name.
type orderJSON struct {
	Scheme             string                      `json:"scheme"`
	OriginSettler      *string                     `json:"originSettler"`
	Sender             representationtest.HexBytes `json:"sender"`
	Recipient          representationtest.HexBytes `json:"recipient"`
	InputToken         representationtest.HexBytes `json:"inputToken"`
	OutputToken        representationtest.HexBytes `json:"outputToken"`
	AmountIn           string                      `json:"amountIn"`
	AmountOut          string                      `json:"amountOut"`
	SenderNonce        string                      `json:"senderNonce"`
	OriginDomain       uint32                      `json:"originDomain"`
	DestinationDomain  uint32                      `json:"destinationDomain"`
	DestinationSettler representationtest.HexBytes `json:"destinationSettler"`
	FillDeadline       uint32                      `json:"fillDeadline"`
	Data               representationtest.HexBytes `json:"data"`
	OrderData          representationtest.HexBytes `json:"orderData"`
}

func newIntentJSON(r *intent.Record) intentJSON {
	i, o := r.Intent, r.Order
	leg := func(l transfer.Leg) legJSON { return legJSON{l.Account.String(), l.Token.String(), l.Amount.String()} }
	out := intentJSON{
		Summary: representationtest.NewSummary(i.Summary()),
		Final:   transfer.Final(i.Type, i.Status), Failure: representationtest.Optional(i.Failure),
		Source: leg(i.Source), Destination: leg(i.Destination), Deadline: representationtest.Timestamp(i.Deadline),
		Order: orderJSON{
			Scheme: i.Settlement.Scheme, OriginSettler: representationtest.Optional(i.Settlement.OriginSettler),
			Sender: o.Sender[:], Recipient: o.Recipient[:], InputToken: o.InputToken[:], OutputToken: o.OutputToken[:],
			AmountIn: o.AmountIn.String(), AmountOut: o.AmountOut.String(), SenderNonce: o.SenderNonce.String(),
			OriginDomain: o.OriginDomain, DestinationDomain: o.DestinationDomain,
			DestinationSettler: o.DestinationSettler[:], FillDeadline: o.FillDeadline, Data: o.Data, OrderData: o.Encoded,
		},
		Tx: representationtest.NewTx(r.Tx), Transactions: []transactionJSON{}, Refundable: r.Refundable,
	}
	if c := r.Confirmations; c != nil {
		out.Confirmations = &confirmationsJSON{c.Have, c.Need, c.Finalized}
	}
	if r.Unverifiable {
		unsupported := "unsupported"
		out.Verification = &unsupported
	}
	for _, t := range r.Transactions {
		shown := transactionJSON{Role: t.Role, ChainID: t.Chain.String(), Hash: t.Hash[:], State: t.State, SeenAt: representationtest.Timestamp(t.SeenAt)}
		if t.Block != nil {
			shown.BlockNumber = &t.Block.Number
		}
		out.Transactions = append(out.Transactions, shown)
	}
	return out
}

// anyRecord draws a record of an intent.
func anyRecord(t *rapid.T) *intent.Record {
	i := representationtest.Intent().Draw(t, "intent")
	r, err := intent.NewRecord(i, i.Deadline.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	r.Refundable, r.Unverifiable = rapid.Bool().Draw(t, "refundable"), rapid.Bool().Draw(t, "unverifiable")
	if rapid.Bool().Draw(t, "in a block") {
		r.Confirmations = &transfer.Confirmations{Have: rapid.Uint64().Draw(t, "have"), Need: 3, Finalized: rapid.Bool().Draw(t, "finalized")}
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "transactions") {
		shown := transfer.Transaction{
			Role: transfer.RoleOpen, Chain: i.Source.Account.Chain, Hash: common.Hash{byte(n)}, State: transfer.Mined,
			SeenAt: representationtest.Time().Draw(t, "seen"),
		}
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
