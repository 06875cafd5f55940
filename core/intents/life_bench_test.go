package intents_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

// BenchmarkLife takes intents from their birth to their end as the service does: a POST each, a report each, one poll of the chain for 100 of
// them each time, and rounds of the feed. An operation is one intent. WAL/intent is what Postgres logs of it without images of pages, whose
// number depends on the checkpoints (deploy/postgres.md); each step has its share.
func BenchmarkLife(b *testing.B) {
	for name, l := range map[string]life{
		"transfer": {pgtest.TransferBody, []transfer.Role{transfer.RoleSend}},
		"bridge":   {pgtest.BridgeBody, []transfer.Role{transfer.RoleOpen, transfer.RoleFill, transfer.RoleFinalise}},
	} {
		b.Run(name, func(b *testing.B) { l.run(b) })
	}
}

// life is the request of an intent and the transactions that it goes through.
type life struct {
	body  string
	roles []transfer.Role
}

func (l life) run(b *testing.B) {
	b.Helper()
	store := pgtest.New(b)
	template := pgtest.NewIntent(b, pgtest.LoadRegistry(b, store), uuid.New(), l.body)
	all := make([]*transfer.Intent, b.N)
	for n := range all {
		one := *template
		one.AccountID, one.ID = uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n%1000)), uuid.Must(uuid.NewV7())
		one.OrderID = sha256.Sum256(one.ID[:])
		all[n] = &one
	}
	origin, destination := template.Source.Account.Chain, template.Destination.Account.Chain
	leases := map[caip.ChainID]watched.Lease{}
	for _, chain := range []caip.ChainID{origin, destination} {
		if _, held := leases[chain]; !held { // both may be the same
			leases[chain] = pgtest.AcquireLease(b, store, chain, time.Hour)
		}
	}
	pgtest.Exec(b, store, `ANALYZE`)
	last, cpu := pgtest.LookUp[float64](b, store, walPosition), pgtest.BackendCPU(b, store)
	step := func(name string) {
		now, used := pgtest.LookUp[float64](b, store, walPosition), pgtest.BackendCPU(b, store)
		b.ReportMetric((now-last)/float64(b.N), name+"-WAL/intent")
		b.ReportMetric((used-cpu)/float64(b.N), name+"-CPU-µs/intent")
		pgtest.Exec(b, store, `ANALYZE`) // as autovacuum does
		last, cpu = pgtest.LookUp[float64](b, store, walPosition), pgtest.BackendCPU(b, store)
	}
	feed := func() {
		for more := true; more; {
			round, err := store.Feed.AssignPositions(b.Context(), true, false)
			if err != nil {
				b.Fatal(err)
			}
			more = round.More
		}
	}
	b.ResetTimer()
	each(b, all, func(one *transfer.Intent) error {
		_, err := store.Intents.InsertTransfer(b.Context(), one, intents.Idempotency{})
		return err
	})
	step("create")
	each(b, all, func(one *transfer.Intent) error {
		_, err := store.Intents.ReportTransaction(b.Context(), access.OfOperator, one.AccountID, []uuid.UUID{one.ID}, hashOf(one, l.roles[0]))
		return err
	})
	step("report")
	for _, role := range l.roles {
		chain := origin
		if role == transfer.RoleFill {
			chain = destination
		}
		for _, confirmed := range []bool{false, true} {
			observe(b, store, leases[chain], all, role, confirmed)
		}
		step(string(role))
	}
	feed()
	b.StopTimer()
	step("feed")
	for _, table := range []string{"transfers", "transactions", "events", "feed"} {
		b.ReportMetric(pgtest.LookUp[float64](b, store, `SELECT count(*)::float8 FROM `+table)/float64(b.N), table+"-rows/intent")
		b.ReportMetric(pgtest.LookUp[float64](b, store, `SELECT pg_total_relation_size($1)::float8`, table)/float64(b.N), table+"-B/intent")
	}
	b.Log(pgtest.LookUp[string](b, store, `SELECT string_agg(status || ' ' || n, ', ') FROM (SELECT status, count(*) AS n FROM transfers GROUP BY 1) AS s`))
}

const walPosition = `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8`

// each calls do for every intent, 64 at a time, as so many requests.
func each(b *testing.B, all []*transfer.Intent, do func(*transfer.Intent) error) {
	b.Helper()
	var workers sync.WaitGroup
	for n := range 64 {
		workers.Go(func() {
			for i := n; i < len(all); i += 64 {
				if err := do(all[i]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// observe writes what polls of a chain find, 100 transactions each.
func observe(b *testing.B, store *rooms.Rooms, lease watched.Lease, all []*transfer.Intent, role transfer.Role, confirmed bool) {
	b.Helper()
	block := uint64(1)
	for part := range slices.Chunk(all, 100) {
		block++
		seen := make([]intents.Observation, len(part))
		for n, one := range part {
			sender := common.Address{1}
			seen[n] = intents.Observation{AccountID: one.AccountID, TransferID: one.ID, Transaction: transfer.Transaction{
				Role: role, Chain: lease.Chain, Hash: hashOf(one, role), State: transfer.Mined, Block: &transfer.Block{Number: block, Hash: common.Hash{byte(block)}},
				LogIndex: int64(n), Confirmed: confirmed, Sender: &sender, Nonce: block,
			}}
		}
		if _, err := store.Intents.WriteChain(b.Context(), lease, intents.ChainWrite{Seen: seen}); err != nil {
			b.Fatal(err)
		}
	}
}

func hashOf(one *transfer.Intent, role transfer.Role) common.Hash {
	return sha256.Sum256(append([]byte(role), one.ID[:]...))
}
