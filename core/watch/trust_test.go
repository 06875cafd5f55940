package watch_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// lie has a provider of Sepolia lie until truth.
func (w *world) lie(provider int, lie rpctest.Lie) {
	w.fault(provider, func(f *rpctest.Faults) { f.Lie = lie })
}

func (w *world) truth(provider int) {
	w.fault(provider, func(f *rpctest.Faults) { *f = rpctest.Faults{} })
}

// polls mines so many blocks of Sepolia and polls at each. No poll may fail.
func (w *world) polls(n int) {
	w.Helper()
	for range n {
		w.chains[sepolia].MineEmpty(1)
		w.tick(sepolia)
	}
}

// invents adds an event to the logs that a provider returns of a block.
func invents(event rpctest.Log, number uint64, hash common.Hash) rpctest.Lie {
	log := map[string]any{
		"address": event.Address.Hex(), "topics": event.Topics, "data": hexutil.Encode(event.Data), "blockNumber": hexutil.EncodeUint64(number),
		"blockHash": hash.Hex(), "transactionHash": common.Hash{9}.Hex(), "logIndex": "0x63", "removed": false,
	}
	return func(method string, result rpctest.Result) rpctest.Result {
		if logs, ok := result.([]any); ok && method == "eth_getLogs" {
			return append(logs, log)
		}
		return result
	}
}

// Case 1: an event that one provider has shown once, or of an uncle, blocks no later poll and is deleted.
func TestTrust_InventedEvent(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]common.Hash{"in the block": {}, "in an uncle": {8}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			intent := w.confirmedBridge()
			block := w.chains[sepolia].Head()
			if hash == (common.Hash{}) {
				hash = block.Hash
			}
			w.chains[sepolia].MineEmpty(1)
			w.lie(0, invents(w.refund(intent).Logs[0], block.Number, hash))
			w.tick(sepolia)
			w.truth(0)
			w.wantTransactions(intent, "open mined*", "refund mined")
			w.polls(4 * confirmations)
			w.want(intent, "created submitted confirmed")
			w.wantTransactions(intent, "open mined*")
		})
	}
}

// Case 2: an invented claim that another provider contradicts denies no refund.
func TestTrust_InventedClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.confirmedBridge()
	claim := w.finalise(intent)
	fork := w.chains[sepolia].Fork(w.chains[sepolia].Head().Number)
	fork.Mine(claim)
	for range 2*confirmations + 1 {
		fork.MineEmpty(1)
		w.chains[sepolia].MineEmpty(1)
	}
	block := w.chains[sepolia].Head().Number - 2*confirmations
	lie := invents(claim.Logs[0], block, w.chains[sepolia].Block(block).Hash)
	receipt := map[string]any{
		"transactionHash": common.Hash{9}.Hex(), "blockNumber": hexutil.EncodeUint64(block), "blockHash": w.chains[sepolia].Block(block).Hash.Hex(),
		"from": alice, "to": bob, "status": "0x1",
	}
	w.lie(0, func(method string, result rpctest.Result) rpctest.Result {
		if method == "eth_getTransactionReceipt" && result == nil {
			receipt["logs"] = lie("eth_getLogs", []any{})
			return receipt
		}
		return lie(method, result)
	})
	w.tick(sepolia)
	w.polls(2)
	w.wantTransactions(intent, "open mined*", "finalise mined")
	pgtest.Exec(t, w.store, "UPDATE transfers SET expires = now() - interval '1 hour'")
	if n, err := w.store.Intents.WriteRefundableEvents(t.Context()); err != nil || n != 1 {
		t.Errorf("%d orders can be refunded, %v", n, err)
	}
}

// Case 3: what one provider shows of a payment ends no intent. Two others, or the same one in the next poll, are believed.
func TestTrust_OneProviderFails(t *testing.T) {
	t.Parallel()
	in := func(member string, value any) rpctest.Lie {
		return rpctest.LieIn("eth_getTransactionReceipt", member, func(any) any { return value })
	}
	for name, c := range map[string]struct {
		providers int
		forever   bool
		lie       rpctest.Lie
		reverted  bool
		want      string
	}{
		"without logs, once": {2, false, in("logs", []any{}), false, "confirmed"},
		"reverted, once": {2, false, func(m string, r rpctest.Result) rpctest.Result {
			return in("status", "0x0")(m, in("logs", []any{})(m, r))
		}, false, "confirmed"},
		"reverted, for ever": {3, true, func(m string, r rpctest.Result) rpctest.Result {
			return in("status", "0x0")(m, in("logs", []any{})(m, r))
		}, false, "confirmed"},
		"an old block, once":         {2, false, rpctest.LieIn("eth_getBlockByNumber", "timestamp", func(any) any { return "0x60000000" }), false, "confirmed"},
		"a reverted one as mismatch": {3, true, in("status", "0x1"), true, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.providers)
			intent := w.intent(transferOf(usdc))
			tx := w.pay(intent)
			tx.Reverted = c.reverted
			w.report(intent, w.hash(tx))
			w.lie(0, c.lie)
			w.chains[sepolia].Mine(tx)
			w.tick(sepolia)
			if !c.forever {
				w.polls(confirmations)
				w.truth(0)
			}
			w.polls(confirmations + 1)
			w.want(intent, "created submitted "+c.want)
			if c.reverted {
				w.wantTransactions(intent, "send reverted*")
			}
		})
	}
}

// Case 4: the preferred provider hides the opening of an order that nobody reports. The cursor passes its block only after another host's
// reading.
func TestTrust_HiddenOpening(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.bridge()
	w.fault(0, func(f *rpctest.Faults) { f.EmptyLogs = true })
	w.chains[sepolia].Mine(w.open(intent))
	w.polls(confirmations + 2)
	w.want(intent, "created submitted confirmed")
}

// Case 5: what the tags of one provider name is not final, and only the lower one of two counts. The only host of a chain is believed at the
// chain's depth.
func TestTrust_Tags(t *testing.T) {
	t.Parallel()
	for providers, final := range map[int]uint64{2: 6, 1: 2} {
		w := newWorld(t, providers)
		pgtest.Exec(t, w.store, "UPDATE chains SET finality = $1 WHERE id = 'eip155:11155111'", registry.Finalized)
		if err := w.live.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.chains[sepolia].SetTag("finalized", 6)
		w.chains[sepolia].SetTag("safe", 6)
		w.fault(0, func(f *rpctest.Faults) { f.Tags = map[string]uint64{"finalized": 0, "safe": 0} })
		w.polls(10)
		progress, err := w.store.Watched.Progress(t.Context(), sepolia)
		if head := w.chains[sepolia].Head().Number; err != nil || progress.Final != head-final || progress.Confirmed != head-final {
			t.Errorf("%d providers: block %d is final at block %d, %v", providers, progress.Final, head, err)
		}
	}
}

// Case 6: the time of a block of one provider does not make orders refundable.
func TestTrust_BlockTime(t *testing.T) {
	t.Parallel()
	for liar := range 2 {
		w := newWorld(t, 2)
		intent := w.confirmedBridge()
		pgtest.Exec(t, w.store, "UPDATE transfers SET expires = now() + interval '1 minute'")
		w.lie(liar, rpctest.LieIn("eth_getBlockByNumber", "timestamp", func(any) any {
			return hexutil.EncodeUint64(uint64(time.Now().Add(4 * time.Minute).Unix()))
		}))
		w.polls(3 * confirmations)
		if _, err := w.store.Intents.WriteRefundableEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantRefundable(map[*transfer.Intent]bool{intent: false})
	}
}

// Case 8: a lag of all providers waits, however long and far, and another chain's blocks stop nothing.
func TestTrust_NoStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		providers int
		fault     func(*world, int)
	}{
		"both lag": {2, func(w *world, n int) { w.fault(n, func(f *rpctest.Faults) { f.Lag = 3*confirmations + 5 }) }},
		"another chain": {1, func(w *world, n int) {
			other := rpctest.NewChain(5)
			other.MineEmpty(60)
			w.nodes[sepolia][n].Follow(other)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.providers)
			w.deepen(sepolia, 3*confirmations)
			for n := range c.providers {
				c.fault(w, n)
			}
			for range 3 {
				if _, err := w.loops[sepolia].Tick(t.Context()); err == nil {
					t.Error("it is read")
				}
				w.loops[sepolia].SetOthersDown()
			}
			if progress, err := w.store.Watched.Progress(t.Context(), sepolia); err != nil || progress.Stopped != "" {
				t.Errorf("stopped: %q, %v", progress.Stopped, err)
			}
			for n := range c.providers {
				w.truth(n)
				w.nodes[sepolia][n].Follow(w.chains[sepolia])
			}
			intent := w.bridge()
			w.connect() // what serves another chain is asked again after a minute
			w.follow(sepolia)
			w.mine(sepolia, w.open(intent))
			w.polls(confirmations)
			w.want(intent, "created submitted confirmed")
		})
	}
}

// Case 10: a second provider that numbers logs differently confirms what they say.
func TestTrust_Renumbered(t *testing.T) {
	t.Parallel()
	for liar := range 2 {
		w := newWorld(t, 2)
		w.lie(liar, rpctest.Renumber)
		intent, sent := w.bridge(), w.intent(transferOf(usdc))
		tx := w.pay(sent)
		w.report(sent, w.hash(tx))
		w.mine(sepolia, w.open(intent), tx)
		w.polls(confirmations)
		w.want(intent, "created submitted confirmed")
		w.want(sent, "created submitted confirmed")
	}
}

// Case 9: a load balancer that returns logs twice stops no chain, be it the chain's only provider.
func TestTrust_Duplicates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lie(0, rpctest.Duplicate)
	intent := w.openBridge()
	w.polls(confirmations)
	w.want(intent, "created submitted confirmed")
}

// Cases 3 and 7: an attempt is replaced only where two hosts show its sender's nonce as used and do not know it. What a provider shows as
// pending is pending, and the nonces of other types than the account's are not compared.
func TestTrust_Nonces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(*world, common.Hash)
	}{
		"one shows another nonce, the other is silent": {func(w *world, hash common.Hash) {
			w.lie(0, rpctest.LieIn("eth_getTransactionByHash", "nonce", func(any) any { return "0x0" }))
			w.fault(1, func(f *rpctest.Faults) { f.Down = true })
		}},
		"both show it as pending": {func(*world, common.Hash) {}},
		"parallel nonces, and nobody shows it any more": {func(w *world, hash common.Hash) {
			for n := range 2 {
				w.lie(n, rpctest.LieIn("eth_getTransactionByHash", "type", func(any) any { return "0x76" }))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			intent := w.intent(transferOf(usdc))
			tx := w.pay(intent)
			c.fault(w, w.hash(tx))
			w.seenPending(intent, tx)
			other := tx
			other.Nonce++ // of another lane
			other.Input, other.Logs = []byte("another"), nil
			w.chains[sepolia].Mine(other)
			if name != "both show it as pending" {
				w.fault(0, func(f *rpctest.Faults) { f.Unknown = map[common.Hash]bool{w.hash(tx): true} })
			}
			for range 2 * confirmations {
				w.later("1 hour")
				w.polls(1)
			}
			w.want(intent, "created submitted")
			for n := range 2 {
				w.truth(n)
			}
			w.chains[sepolia].Mine(tx)
			w.due()
			w.polls(confirmations + 1)
			w.due()
			w.polls(1)
			w.want(intent, "created submitted confirmed")
		})
	}
}

// Case 3: reporting the hash of a failed attempt again has it looked up again.
func TestTrust_ReportedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.intent(transferOf(usdc))
	tx := w.pay(intent)
	w.report(intent, w.hash(tx))
	for n := range 2 { // both are wrong about it
		w.lie(n, rpctest.LieIn("eth_getTransactionReceipt", "logs", func(any) any { return []any{} }))
	}
	w.mine(sepolia, tx)
	w.polls(confirmations)
	w.want(intent, "created submitted failed")
	for n := range 2 {
		w.truth(n)
	}
	w.report(intent, w.hash(tx))
	w.polls(2)
	w.want(intent, "created submitted failed submitted confirmed")
}

// Case 3: a failed attempt is read again at times, and one that both hosts were wrong about carries the intent after all.
func TestTrust_FailedReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mined bool
		lie   rpctest.Lie
	}{
		"without logs": {true, rpctest.LieIn("eth_getTransactionReceipt", "logs", func(any) any { return []any{} })},
		"reverted":     {true, rpctest.LieIn("eth_getTransactionReceipt", "status", func(any) any { return "0x0" })},
		"replaced": {false, func(method string, result rpctest.Result) rpctest.Result {
			if method == "eth_getTransactionCount" {
				return "0xff"
			}
			return result
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			intent := w.intent(transferOf(usdc))
			tx := w.pay(intent)
			w.seenPending(intent, tx)
			for n := range 2 {
				w.fault(n, func(f *rpctest.Faults) { f.Lie, f.Unknown = c.lie, map[common.Hash]bool{w.hash(tx): !c.mined} })
			}
			if c.mined {
				w.chains[sepolia].Mine(tx)
			}
			w.due()
			w.polls(confirmations)
			w.due()
			w.polls(1)
			w.want(intent, "created submitted failed")
			for n := range 2 {
				w.truth(n)
			}
			if !c.mined {
				w.chains[sepolia].Mine(tx)
			}
			w.polls(confirmations)
			w.want(intent, "created submitted failed") // it is not due
			w.due()
			w.polls(1)
			w.want(intent, "created submitted failed submitted confirmed")
			if due := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transactions WHERE due_at IS NOT NULL"); due != 0 {
				t.Errorf("%d attempts are due of a confirmed transfer", due)
			}
		})
	}
}

// Case 3: who has many failed attempts delays the reading of another account's no longer than one turn, and none is read after a week.
func TestTrust_FailedShares(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	hog := w.intent(transferOf(usdc))
	pgtest.Exec(t, w.store, `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, confirmed_at, seen_at, due_at)
		SELECT $1, $2, 'eip155:11155111', sha256(n::text::bytea), 'send', 'replaced', true, now(), now() - interval '1 h' * (n % 300), `+hourAgo+` FROM generate_series(1, 6000) AS n`,
		hog.AccountID, hog.ID)
	w.owner = uuid.New()
	intent := w.intent(transferOf(usdc))
	tx := w.pay(intent)
	w.report(intent, w.hash(tx))
	w.mine(sepolia, tx)
	pgtest.Exec(t, w.store, `UPDATE transactions SET state = 'mismatch', log_index = NULL, confirmed_at = now(), due_at = now() WHERE account_id = $1`, w.owner)
	before := w.nodes[sepolia][0].Calls()["eth_getTransactionReceipt"]
	w.polls(confirmations)
	w.want(intent, "created submitted failed submitted confirmed")
	if calls := w.nodes[sepolia][0].Calls()["eth_getTransactionReceipt"] - before; calls > 3*600 {
		t.Errorf("%d receipts in three polls", calls)
	}
	if old := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM transactions WHERE due_at > now() AND seen_at < now() - interval '7 days'"); old != 0 {
		t.Errorf("%d attempts are read again that are older than a week", old)
	}
}

// Case 7: a reorganization that takes the replacing transaction away makes the replaced one pending again.
func TestTrust_ReplacedAfterReorg(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	intent := w.intent(transferOf(usdc))
	tx := w.pay(intent)
	w.seenPending(intent, tx)
	w.chains[sepolia].Mine(rpctest.Tx{From: tx.From, Nonce: tx.Nonce, To: &tx.From})
	w.polls(confirmations)
	w.due()
	w.polls(1)
	w.want(intent, "created submitted failed")
	w.chains[sepolia].Reorg(confirmations+1, make([][]rpctest.Tx, confirmations+2)...)
	w.chains[sepolia].Submit(tx)
	w.polls(1)
	w.want(intent, "created submitted failed submitted")
	w.wantTransactions(intent, "send pending")
	w.chains[sepolia].Mine(tx)
	w.polls(confirmations + 1)
	w.want(intent, "created submitted failed submitted confirmed")
}

// What replaced an attempt is for two hosts to say: one that hides it, or what it did, fails nothing.
func TestTrust_Successor(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]rpctest.Lie{
		"no block": func(method string, result rpctest.Result) rpctest.Result {
			block, _ := result.(map[string]any)
			if transactions, ok := block["transactions"].([]any); ok && method == "eth_getBlockByNumber" && len(transactions) > 0 {
				if _, whole := transactions[0].(map[string]any); whole {
					block["transactions"] = []any{}
				}
			}
			return result
		},
		"no effect": rpctest.LieIn("eth_getTransactionReceipt", "logs", func(any) any { return []any{} }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for liar := range 2 {
				w := newWorld(t, 2)
				intent := w.intent(transferOf(usdc))
				tx := w.pay(intent)
				w.seenPending(intent, tx)
				other := tx
				other.Input = []byte("at another price")
				w.lie(liar, lie)
				w.chains[sepolia].Mine(other)
				for range confirmations + 2 {
					w.due()
					w.polls(1)
				}
				w.want(intent, "created submitted")
				w.truth(liar)
				w.due()
				w.polls(1)
				w.want(intent, "created submitted submitted confirmed")
			}
		})
	}
}
