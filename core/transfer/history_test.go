package transfer_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// heights are those of the chain of attempt and answer, whose transactions are in block 7.
func heights(head, final uint64) map[caip.ChainID]transfer.Heights {
	return map[caip.ChainID]transfer.Heights{{}: {Head: head, Final: final}}
}

func TestHistory_Confirmations(t *testing.T) {
	t.Parallel()
	type list = []transfer.Transaction
	mined, confirmed := attempt(hashA, transfer.Mined, false), attempt(hashA, transfer.Mined, true)
	for name, c := range map[string]struct {
		history transfer.History
		want    *transfer.Confirmations
	}{
		"nothing known":           {},
		"pending":                 {history: transfer.History{Transactions: list{attempt(hashA, transfer.Pending, false)}, Heights: heights(9, 9)}},
		"no effect":               {history: transfer.History{Transactions: list{attempt(hashA, transfer.Reverted, true)}, Heights: heights(9, 9)}},
		"the fill alone":          {history: transfer.History{Transactions: list{answer(transfer.RoleFill, hashA, true)}, Heights: heights(9, 9)}},
		"in the head":             {transfer.History{Transactions: list{mined}, Heights: heights(7, 0)}, &transfer.Confirmations{Have: 1, Need: 3}},
		"a block is on it":        {transfer.History{Transactions: list{mined}, Heights: heights(8, 6)}, &transfer.Confirmations{Have: 2, Need: 3}},
		"final":                   {transfer.History{Transactions: list{confirmed}, Heights: heights(9, 7)}, &transfer.Confirmations{Have: 3, Need: 3, Finalized: true}},
		"final, by one provider":  {transfer.History{Transactions: list{mined}, Heights: heights(9, 7)}, &transfer.Confirmations{Have: 3, Need: 3}},
		"above the head":          {transfer.History{Transactions: list{mined}, Heights: heights(5, 4)}, &transfer.Confirmations{Have: 1, Need: 3}},
		"a chain that is unread":  {transfer.History{Transactions: list{mined}}, &transfer.Confirmations{Have: 1, Need: 3}},
		"another attempt reverts": {transfer.History{Transactions: list{attempt(hashB, transfer.Reverted, true), mined}, Heights: heights(8, 0)}, &transfer.Confirmations{Have: 2, Need: 3}},
	} {
		if diff := cmp.Diff(c.want, c.history.Confirmations(3)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHistory_Unverifiable(t *testing.T) {
	t.Parallel()
	unsupported := attempt(hashA, transfer.Unsupported, false)
	for name, c := range map[string]struct {
		transactions []transfer.Transaction
		want         bool
	}{
		"nothing known":     {nil, false},
		"pending":           {[]transfer.Transaction{attempt(hashA, transfer.Pending, false)}, false},
		"unsupported":       {[]transfer.Transaction{attempt(hashB, transfer.Pending, false), unsupported}, true},
		"the effect is too": {[]transfer.Transaction{unsupported, attempt(hashB, transfer.Mined, false)}, false},
	} {
		if got := (transfer.History{Transactions: c.transactions}).Unverifiable(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Whether an order can be refunded is decided by the source chain's clock, past expires; the deadline does not matter.
func TestIntent_Refundable(t *testing.T) {
	t.Parallel()
	type list = []transfer.Transaction
	past := func(d time.Duration) time.Time { return newIntent(transfer.Bridge).Settlement.Expires.Add(d) }
	for name, c := range map[string]struct {
		kind    transfer.Type
		status  transfer.Status
		scheme  string
		read    time.Time
		answers list
		want    bool
	}{
		"after expires":             {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(time.Second), nil, true},
		"long after":                {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(1000 * time.Hour), nil, true},
		"a swap":                    {transfer.Swap, transfer.Confirmed, registry.StandardOrder, past(time.Second), nil, true},
		"at expires":                {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(0), nil, false},
		"between deadline and then": {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(-time.Hour), nil, false},
		"not followed":              {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, time.Time{}, nil, false},
		"a transfer":                {transfer.Transfer, transfer.Confirmed, registry.StandardOrder, past(time.Second), nil, false},
		"an older scheme":           {transfer.Bridge, transfer.Confirmed, "erc7683-v1/OrderData", past(time.Second), nil, false},
		"not deep enough":           {transfer.Bridge, transfer.Submitted, registry.StandardOrder, past(time.Second), nil, false},
		"filled":                    {transfer.Bridge, transfer.Filled, registry.StandardOrder, past(time.Second), nil, false},
		"refunded":                  {transfer.Bridge, transfer.Refunded, registry.StandardOrder, past(time.Second), nil, false},
		"a fill is known":           {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(time.Second), list{answer(transfer.RoleFill, hashB, false)}, false},
		"a fill is disputed":        {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(time.Second), list{disputed(answer(transfer.RoleFill, hashB, false))}, true},
		"the solver claimed":        {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(time.Second), list{answer(transfer.RoleFinalise, hashB, true)}, false},
		"a refund is under way":     {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(time.Second), list{answer(transfer.RoleRefund, hashB, false)}, false},
		"an attempt reverted":       {transfer.Bridge, transfer.Confirmed, registry.StandardOrder, past(time.Second), list{attempt(hashB, transfer.Reverted, true)}, true},
	} {
		intent := newIntent(c.kind)
		intent.Status, intent.Settlement.Scheme = c.status, c.scheme
		history := transfer.History{Transactions: append(list{attempt(hashA, transfer.Mined, true)}, c.answers...), SourceReadUntil: c.read}
		if got := intent.Refundable(history); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// disputed is a transaction that fewer than two providers show.
func disputed(t transfer.Transaction) transfer.Transaction {
	t.Disputed = true
	return t
}

func TestEffect(t *testing.T) {
	t.Parallel()
	// An opening that one provider invents is seen first and does not outrank the confirmed one.
	transactions := []transfer.Transaction{attempt(hashA, transfer.Mined, false), attempt(hashB, transfer.Mined, true)}
	if got := transfer.Effect(transactions); got != &transactions[1] {
		t.Errorf("got %+v", got)
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	type list = []transfer.Transaction
	type shown struct {
		Role  transfer.Role
		Hash  common.Hash
		State transfer.State
	}
	open := attempt(hashA, transfer.Mined, true)
	for name, c := range map[string]struct {
		status       transfer.Status
		transactions list
		final        uint64
		want         []shown
	}{
		"nothing": {transfer.Submitted, nil, 9, []shown{}},
		"every state of an attempt": {
			transfer.Submitted, list{
				attempt(hashA, transfer.Pending, false), attempt(hashA, transfer.Dropped, false), attempt(hashA, transfer.Replaced, true),
				attempt(hashA, transfer.Reverted, true), attempt(hashA, transfer.Mismatch, true), attempt(hashA, transfer.OrderMismatch, true),
				attempt(hashA, transfer.Unsupported, false), attempt(hashA, transfer.Mined, false),
			}, 6, []shown{
				{transfer.RoleOpen, hashA, "pending"},
				{transfer.RoleOpen, hashA, "pending"},
				{transfer.RoleOpen, hashA, "replaced"},
				{transfer.RoleOpen, hashA, "reverted"},
				{transfer.RoleOpen, hashA, "mismatch"},
				{transfer.RoleOpen, hashA, "mismatch"},
				{transfer.RoleOpen, hashA, "mined"},
				{transfer.RoleOpen, hashA, "mined"},
			},
		},
		"final blocks": {
			transfer.Confirmed,
			list{attempt(hashB, transfer.Reverted, true), open},
			7,
			[]shown{{transfer.RoleOpen, hashB, "reverted"}, {transfer.RoleOpen, hashA, "finalized"}},
		},
		"an attempt beside the effect that is not deep": {
			transfer.Submitted,
			list{attempt(hashB, transfer.Pending, false), attempt(hashA, transfer.Mined, false)},
			6,
			[]shown{{transfer.RoleOpen, hashB, "pending"}, {transfer.RoleOpen, hashA, "mined"}},
		},
		"attempts that another one has beaten": {
			transfer.Confirmed,
			list{attempt(hashB, transfer.Pending, false), attempt(hashC, transfer.Dropped, false), open},
			6,
			[]shown{{transfer.RoleOpen, hashB, "replaced"}, {transfer.RoleOpen, hashC, "replaced"}, {transfer.RoleOpen, hashA, "mined"}},
		},
		"fill and claim": {
			transfer.Filled,
			list{open, answer(transfer.RoleFinalise, hashC, true), answer(transfer.RoleFill, hashB, true)},
			6,
			[]shown{{transfer.RoleOpen, hashA, "mined"}, {transfer.RoleFill, hashB, "mined"}},
		},
		"claim alone": {
			transfer.Confirmed,
			list{open, answer(transfer.RoleFinalise, hashC, true)},
			6,
			[]shown{{transfer.RoleOpen, hashA, "mined"}},
		},
		"fill and refund": {
			transfer.Filled,
			list{open, answer(transfer.RoleFill, hashB, true), answer(transfer.RoleRefund, hashC, true)},
			6,
			[]shown{{transfer.RoleOpen, hashA, "mined"}, {transfer.RoleFill, hashB, "mined"}, {transfer.RoleRefund, hashC, "mined"}},
		},
		"refund": {
			transfer.Refunded,
			list{open, answer(transfer.RoleRefund, hashB, true)},
			7,
			[]shown{{transfer.RoleOpen, hashA, "finalized"}, {transfer.RoleRefund, hashB, "finalized"}},
		},
	} {
		intent := transfer.Intent{Type: transfer.Bridge, Status: c.status, Hash: hashA.Hex()}
		got := []shown{}
		for _, transaction := range intent.Shown(transfer.History{Transactions: c.transactions, Heights: heights(9, c.final)}) {
			got = append(got, shown{transaction.Role, transaction.Hash, transaction.State})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
