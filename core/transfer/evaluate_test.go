package transfer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"intents.internal/core/transfer"
)

var (
	hashA, hashB, hashC = common.HexToHash("0xa"), common.HexToHash("0xb"), common.HexToHash("0xc")
	block7              = &transfer.Block{Number: 7, Hash: common.HexToHash("0x7")}
)

func attempt(hash common.Hash, state transfer.State, confirmed bool) transfer.Transaction {
	t := transfer.Transaction{Role: transfer.RoleOpen, Hash: hash, State: state, Reported: true, Confirmed: confirmed, SeenAt: noon}
	if state != transfer.Pending && state != transfer.Dropped && state != transfer.Replaced {
		t.Block = block7
	}
	return t
}

func answer(role transfer.Role, hash common.Hash, confirmed bool) transfer.Transaction {
	return transfer.Transaction{Role: role, Hash: hash, State: transfer.Mined, Confirmed: confirmed, Block: block7, SeenAt: noon}
}

// found is the opening of the order by somebody else, seen on chain.
func found(hash common.Hash) transfer.Transaction {
	t := attempt(hash, transfer.Mined, true)
	t.Reported = false
	return t
}

// evaluate leads an intent to the status of its transactions and returns the way, as "trigger status".
func evaluate(t interface{ Fatal(...any) }, intent *transfer.Intent, transactions []transfer.Transaction, now time.Time) (way string) {
	commands, err := intent.Evaluate(transactions, now)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, c := range commands {
		event, err := intent.Apply(c, now)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, fmt.Sprintf("%s %s", event.Trigger, event.To))
	}
	return strings.Join(steps, ", ")
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	type list = []transfer.Transaction
	late := func(t transfer.Transaction) transfer.Transaction { t.SeenAt = noon.Add(time.Second); return t }
	for name, c := range map[string]struct {
		from         transfer.Status
		hash         common.Hash
		transactions list
		late         bool // the deadline has passed
		cancelled    bool
		way          string
	}{
		"nothing is known":                         {from: transfer.Created},
		"nothing is known of a cancelled one":      {from: transfer.Cancelled},
		"an attempt":                               {from: transfer.Created, transactions: list{attempt(hashA, transfer.Pending, false)}, way: "submit submitted"},
		"an attempt of an expired one":             {from: transfer.Expired, transactions: list{attempt(hashA, transfer.Pending, false)}, way: "submit submitted"},
		"a second attempt":                         {from: transfer.Submitted, hash: hashA, transactions: list{attempt(hashA, transfer.Pending, false), late(attempt(hashB, transfer.Pending, false))}, way: "submit submitted"},
		"an effect that is not deep":               {from: transfer.Cancelled, transactions: list{attempt(hashA, transfer.Mined, false)}, way: "submit submitted"},
		"a deep effect":                            {from: transfer.Submitted, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true)}, way: "confirm confirmed"},
		"a deep effect of one that expired":        {from: transfer.Expired, transactions: list{attempt(hashA, transfer.Mined, true)}, way: "submit submitted, confirm confirmed"},
		"a fill that is not final":                 {from: transfer.Confirmed, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleFill, hashB, false)}},
		"a fill":                                   {from: transfer.Confirmed, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleFill, hashB, true)}, way: "fill filled"},
		"a fill before its order":                  {from: transfer.Created, transactions: list{answer(transfer.RoleFill, hashB, true)}},
		"all at once":                              {from: transfer.Created, transactions: list{answer(transfer.RoleFill, hashB, true), attempt(hashA, transfer.Mined, true)}, way: "submit submitted, confirm confirmed, fill filled"},
		"claimed, and no fill was seen":            {from: transfer.Confirmed, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleFinalise, hashB, true)}},
		"claimed before it is confirmed":           {from: transfer.Submitted, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleFinalise, hashB, true)}, way: "confirm confirmed"},
		"refunded":                                 {from: transfer.Confirmed, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleRefund, hashB, true)}, way: "refund refunded"},
		"filled, then refunded":                    {from: transfer.Filled, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleFill, hashB, true), answer(transfer.RoleRefund, hashC, true)}},
		"a fill is seen after the refund":          {from: transfer.Refunded, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleRefund, hashC, true), answer(transfer.RoleFill, hashB, true)}, way: "fill filled"},
		"a fill after the refund is not final":     {from: transfer.Refunded, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleRefund, hashC, true), answer(transfer.RoleFill, hashB, false)}},
		"filled and refunded at once":              {from: transfer.Created, transactions: list{answer(transfer.RoleRefund, hashC, true), answer(transfer.RoleFill, hashB, true), attempt(hashA, transfer.Mined, true)}, way: "submit submitted, confirm confirmed, fill filled"},
		"opened by somebody, the own one reverted": {from: transfer.Submitted, hash: hashB, transactions: list{attempt(hashB, transfer.Reverted, true), found(hashA)}, way: "confirm confirmed"},
		"the own one failed, then somebody's open": {from: transfer.Failed, hash: hashB, transactions: list{attempt(hashB, transfer.Reverted, true), found(hashA)}, way: "submit submitted, confirm confirmed"},
		"the own one reverts after somebody's":     {from: transfer.Confirmed, hash: hashA, transactions: list{found(hashA), attempt(hashB, transfer.Reverted, true)}},
		"a reverted attempt that is not deep":      {from: transfer.Submitted, hash: hashA, transactions: list{attempt(hashA, transfer.Reverted, false)}},
		"a reverted attempt":                       {from: transfer.Submitted, hash: hashA, transactions: list{attempt(hashA, transfer.Reverted, true)}, way: "fail failed"},
		"another order":                            {from: transfer.Submitted, hash: hashA, transactions: list{attempt(hashA, transfer.OrderMismatch, true)}, way: "fail failed"},
		"one of two reverted":                      {from: transfer.Submitted, hash: hashB, transactions: list{attempt(hashA, transfer.Reverted, true), late(attempt(hashB, transfer.Pending, false))}},
		"the one that counted reverted":            {from: transfer.Submitted, hash: hashB, transactions: list{attempt(hashA, transfer.Pending, false), late(attempt(hashB, transfer.Reverted, true))}, way: "submit submitted"},
		"the first of two won":                     {from: transfer.Submitted, hash: hashB, transactions: list{attempt(hashA, transfer.Mined, true), attempt(hashB, transfer.Pending, false)}, way: "confirm confirmed"},
		"another attempt after a failure":          {from: transfer.Failed, hash: hashA, transactions: list{attempt(hashA, transfer.Reverted, true), attempt(hashB, transfer.Pending, false)}, way: "submit submitted"},
		"a failure stays":                          {from: transfer.Failed, hash: hashA, transactions: list{attempt(hashA, transfer.Reverted, true)}},
		"a failure whose block fell":               {from: transfer.Failed, hash: hashA, transactions: list{attempt(hashA, transfer.Pending, false)}, way: "submit submitted"},
		"nobody knows the attempt":                 {from: transfer.Submitted, hash: hashA, late: true, transactions: list{attempt(hashA, transfer.Dropped, false)}, way: "drop expired"},
		"nobody knows it and it stays so":          {from: transfer.Expired, hash: hashA, late: true, transactions: list{attempt(hashA, transfer.Dropped, false)}},
		"one dropped and one reverted":             {from: transfer.Submitted, hash: hashA, late: true, transactions: list{attempt(hashA, transfer.Dropped, false), attempt(hashB, transfer.Reverted, true)}, way: "fail failed"},
		"a dropped one is mined":                   {from: transfer.Expired, hash: hashA, late: true, transactions: list{attempt(hashA, transfer.Mined, true)}, way: "submit submitted, confirm confirmed"},
		"no log to judge by":                       {from: transfer.Submitted, hash: hashA, late: true, transactions: list{attempt(hashA, transfer.Unsupported, false)}},
		"reorganized, the attempt is pending":      {from: transfer.Confirmed, hash: hashA, transactions: list{attempt(hashA, transfer.Pending, false)}, way: "reorg submitted"},
		"reorganized, a filled one":                {from: transfer.Filled, hash: hashA, transactions: list{attempt(hashA, transfer.Pending, false), answer(transfer.RoleFill, hashB, true)}, way: "reorg submitted"},
		"the fill is gone":                         {from: transfer.Filled, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true)}, way: "reorg confirmed"},
		"the fill is gone, a refund stands":        {from: transfer.Filled, hash: hashA, transactions: list{attempt(hashA, transfer.Mined, true), answer(transfer.RoleRefund, hashB, true)}, way: "reorg confirmed, refund refunded"},
		"all is gone":                              {from: transfer.Filled, hash: hashA, way: "reorg created"},
		"all is gone after the deadline":           {from: transfer.Confirmed, hash: hashA, late: true, way: "reorg expired"},
		"all is gone of a cancelled one":           {from: transfer.Confirmed, hash: hashA, late: true, cancelled: true, way: "reorg cancelled"},
		"an effect that nobody reported is gone":   {from: transfer.Submitted, hash: hashA, way: "reorg created"},
		"another transaction carries it":           {from: transfer.Confirmed, hash: hashA, transactions: list{attempt(hashC, transfer.Mined, true)}, way: "reorg submitted, confirm confirmed"},
		"opened without a deposit":                 {from: transfer.Created, transactions: list{attempt(hashA, transfer.Mismatch, true)}, way: "submit submitted, fail failed"},
		"opened without a deposit, and filled":     {from: transfer.Failed, hash: hashA, transactions: list{attempt(hashA, transfer.Mismatch, true), answer(transfer.RoleFill, hashB, true)}, way: "fill filled"},
		"filled, then opened without a deposit":    {from: transfer.Created, transactions: list{answer(transfer.RoleFill, hashB, true), attempt(hashA, transfer.Mismatch, true)}, way: "submit submitted, fail failed, fill filled"},
		"filled without a deposit stays so":        {from: transfer.Filled, hash: hashA, transactions: list{attempt(hashA, transfer.Mismatch, true), answer(transfer.RoleFill, hashB, true)}},
		"the fill without a deposit is gone":       {from: transfer.Filled, hash: hashA, transactions: list{attempt(hashA, transfer.Mismatch, true)}, way: "reorg submitted, fail failed"},
		"refunded without a deposit":               {from: transfer.Failed, hash: hashA, transactions: list{attempt(hashA, transfer.Mismatch, true), answer(transfer.RoleRefund, hashB, true)}},
		"reverted, and filled all the same":        {from: transfer.Failed, hash: hashA, transactions: list{attempt(hashA, transfer.Reverted, true), answer(transfer.RoleFill, hashB, true)}},
		"confirmed, then its attempt has reverted": {from: transfer.Confirmed, hash: hashA, transactions: list{attempt(hashA, transfer.Reverted, true)}, way: "reorg submitted, fail failed"},
	} {
		intent := transfer.Intent{Type: transfer.Bridge, Status: c.from, Deadline: noon.Add(time.Hour)}
		if c.hash != (common.Hash{}) {
			intent.Hash = c.hash.Hex()
		}
		if c.cancelled {
			intent.CancelledAt = noon
		}
		now := noon
		if c.late {
			now = intent.Deadline
		}
		if way := evaluate(t, &intent, c.transactions, now); way != c.way {
			t.Errorf("%s: %q, want %q", name, way, c.way)
		}
	}
}

// Whatever became known in whatever order leads to the same status, and evaluating it again changes nothing.
func TestEvaluate_OrderAndRepetition(t *testing.T) {
	t.Parallel()
	states := []transfer.State{
		transfer.Pending, transfer.Reverted, transfer.Replaced, transfer.Mismatch, transfer.OrderMismatch, transfer.Unsupported, transfer.Dropped,
	}
	rapid.Check(t, func(t *rapid.T) {
		final := []transfer.Transaction{}
		for n := range rapid.IntRange(0, 3).Draw(t, "attempts") {
			a := attempt(common.BigToHash(common.Big1), rapid.SampledFrom(states).Draw(t, "state"), rapid.Bool().Draw(t, "confirmed"))
			a.Hash[0], a.SeenAt = byte(n), noon.Add(time.Duration(n)*time.Second)
			final = append(final, a)
		}
		if rapid.Bool().Draw(t, "opened") {
			final = append(final, attempt(hashC, transfer.Mined, rapid.Bool().Draw(t, "deep")))
		}
		for _, role := range []transfer.Role{transfer.RoleFill, transfer.RoleFinalise, transfer.RoleRefund} {
			if rapid.Bool().Draw(t, string(role)) {
				final = append(final, answer(role, hashB, rapid.Bool().Draw(t, "final")))
			}
		}
		direct := transfer.Intent{Type: transfer.Bridge, Status: transfer.Created, Deadline: noon.Add(time.Hour)}
		evaluate(t, &direct, final, noon)

		stepwise := transfer.Intent{Type: transfer.Bridge, Status: transfer.Created, Deadline: noon.Add(time.Hour)}
		seed := rapid.Uint64().Draw(t, "seed")
		shuffled := slices.Clone(final)
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		for n := range shuffled {
			evaluate(t, &stepwise, shuffled[:n+1], noon)
		}
		if diff := cmp.Diff(direct.Status, stepwise.Status); diff != "" {
			t.Fatalf("status of %+v (-at once +one by one):\n%s", shuffled, diff)
		}
		if i := direct; transfer.Effect(final) != nil && transfer.Ended(i.Type, i.Status) && i.Status != transfer.Filled && i.Status != transfer.Refunded {
			t.Fatalf("the order is open, and the intent has ended %s", i.Status)
		}
		if again := evaluate(t, &stepwise, final, noon); again != "" {
			t.Fatalf("evaluated again: %s", again)
		}
	})
}
