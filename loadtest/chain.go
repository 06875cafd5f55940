package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/registry"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/deploy/stack"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/help"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/embedded"
)

// chainFlags are the flags of the scenario chain.
type chainFlags struct {
	chains, intents, rate int
	duration, blockTime   time.Duration
}

// The chains of the scenario.
const (
	chainConfirmations = 5
	chainInputSettler  = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
	chainOutputSettler = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
	chainOracle        = "0x9fE46736679d2D9a65F0992F2272dE9f3c7fa6e0"
	chainDeployment    = "loadtest"
	firstChain         = 700_001

	// Each chain has oldBlocks already. The orders that wait for their fill were opened in block openedBlock, before the oldest intent
	// that was not sent: core does not read that block again.
	oldBlocks, oldPeriod, openedBlock = 1000, 10 * time.Second, 50
)

// chainScenario measures core while it follows many chains and open intents: its cost, and the latency from a block to the change
// of the intent's status.
func chainScenario(ctx context.Context, args []string) (err error) {
	var f chainFlags
	flags := help.FlagSet("chain", args)
	flags.IntVar(&f.chains, "chains", 36, "number of scripted chains")
	flags.IntVar(&f.intents, "intents", 1_000_000, "number of open intents")
	flags.IntVar(&f.rate, "rate", 20, "bridges a second that are opened and filled during the measurement")
	flags.DurationVar(&f.duration, "duration", 2*time.Minute, "length of the measurement")
	flags.DurationVar(&f.blockTime, "block-time", 4*time.Second, "time between two blocks of each chain")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b, err := openChainBench(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.fill(ctx); err != nil {
		return err
	}
	if err := b.startCore(ctx); err != nil {
		return err
	}
	return b.measure(ctx)
}

// chainBench is a core that follows scripted chains.
type chainBench struct {
	chainFlags
	*database
	dir     string
	log     *os.File
	known   *registry.Snapshot
	account uuid.UUID
	chains  []*scriptedChain
	core    *embedded.Process
	ops     string
}

// scriptedChain is a chain with its scripted node.
type scriptedChain struct {
	id   caip.ChainID
	node *rpctest.Node
	*rpctest.Chain

	mu sync.Mutex
	// mined has the times of the blocks, by number.
	mined map[uint64]time.Time
	next  []rpctest.Tx
}

func openChainBench(ctx context.Context, f chainFlags) (b *chainBench, err error) {
	b = &chainBench{chainFlags: f, account: uuid.New()}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "loadtest-chain-"); err != nil {
		return b, err
	}
	if b.log, err = os.Create(filepath.Join(b.dir, "core.log")); err != nil {
		return b, err
	}
	if b.database, err = openDatabase(ctx); err != nil {
		return b, err
	}
	if err = b.makeChains(ctx); err != nil {
		return b, err
	}
	fmt.Println("building core")
	return b, stack.Build(ctx, "", filepath.Join(b.dir, "bin"), func(line string) { fmt.Fprintln(b.log, line) })
}

// makeChains registers the chains and starts their nodes.
func (b *chainBench) makeChains(ctx context.Context) error {
	var entries []registry.ChainEntry
	var tokens []registry.Token
	providers := map[string][]any{}
	for n := range b.chainFlags.chains {
		id := caip.EIP155Chain(uint64(firstChain + n))
		entries = append(entries, registry.ChainEntry{Chain: registry.Chain{
			ID: id, Name: id.String(), Environment: network.Test, NativeCurrency: registry.Currency{Name: "Ether", Symbol: "ETH", Decimals: 18},
			Confirmations: chainConfirmations, Finality: registry.Depth, BlockTime: b.blockTime,
			Settlements: []registry.Settlement{{
				Scheme: registry.StandardOrder, Deployment: chainDeployment, InputSettler: chainInputSettler, OutputSettler: chainOutputSettler,
				Oracle: chainOracle, ClaimPeriod: registry.DefaultClaimPeriod, Native: true, OutputOracle: registry.DestinationOracle,
			}},
		}})
		tokens = append(tokens, registry.Token{ID: caip.AccountID{Chain: id, Address: registry.NativeAddress}, Symbol: "ETH", Decimals: 18})
		scripted := rpctest.NewChain(uint64(firstChain + n))
		scripted.SetTime(time.Now().Add(-oldBlocks * oldPeriod))
		scripted.SetPeriod(oldPeriod)
		scripted.MineEmpty(oldBlocks)
		scripted.SetPeriod(b.blockTime)
		c := &scriptedChain{id: id, Chain: scripted, node: rpctest.NewNode(scripted).Listen(), mined: map[uint64]time.Time{}}
		b.chains = append(b.chains, c)
		providers[id.String()] = []any{map[string]any{"url": c.node.URL(), "requestsPerSecond": 1000}}
	}
	silent := func(int) {}
	if _, err := b.store.Registry.ImportChains(ctx, entries, time.Now(), silent); err != nil {
		return err
	}
	if _, err := b.store.Registry.ImportTokens(ctx, tokens, time.Now(), silent); err != nil {
		return err
	}
	var err error
	if b.known, err = b.store.Registry.Registry(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(providers)
	if err != nil {
		return err
	}
	return os.WriteFile(b.rpcFile(), text, 0o600)
}

func (b *chainBench) rpcFile() string { return filepath.Join(b.dir, "rpc.json") }

// mine mines a block on every chain each block time, one chain after the other, until ctx ends.
func (b *chainBench) mine(ctx context.Context) {
	ticker := time.NewTicker(b.blockTime / time.Duration(len(b.chains)))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		b.chains[n%len(b.chains)].mineNext()
	}
}

func (c *scriptedChain) mineNext() {
	c.mu.Lock()
	defer c.mu.Unlock()
	block := c.Mine(c.next...)
	c.mined[block.Number] = time.Now()
	c.next = nil
}

// send adds a transaction to the chain's next block.
func (c *scriptedChain) send(tx rpctest.Tx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = append(c.next, tx)
}

// minedAt returns when the block of that number was mined; ok is false before the measurement.
func (c *scriptedChain) minedAt(number uint64) (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok = c.mined[number]
	return at, ok
}

func (b *chainBench) startCore(ctx context.Context) (err error) {
	if b.ops, err = freeAddress(); err != nil {
		return err
	}
	b.core, err = embedded.StartProcess(embedded.Command{
		Name: "core", Path: filepath.Join(b.dir, "bin", "core"), Args: []string{"watch"},
		Output: func(line string) { fmt.Fprintln(b.log, line) },
		Env: append(stack.Environ(),
			"CORE_DATABASE_URL="+b.server.URL, "CORE_OPS_LISTEN="+b.ops, "CORE_RPC_FILE="+b.rpcFile(), "CORE_GATEWAY_SECRET="+strings.Repeat("s", 32)),
	})
	if err != nil {
		return err
	}
	return b.awaitCore(ctx)
}

// awaitCore waits until core has read every chain.
func (b *chainBench) awaitCore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		read, err := readCounter(ctx, "http://"+b.ops+"/metrics", "intents_core_chain_tick_seconds_count")
		if err == nil && int(read) >= len(b.chains) {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-b.core.Done():
			return errors.Join(errors.New("core ended while starting; see "+b.log.Name()), b.core.Err())
		case <-ctx.Done():
			return fmt.Errorf("core has not read all chains within a minute: %w", errors.Join(err, ctx.Err()))
		}
	}
}

func (b *chainBench) close() error {
	var errs []error
	if b.core != nil {
		errs = append(errs, b.core.Stop(stopSignal, 10*time.Second))
	}
	for _, c := range b.chains {
		c.node.Close()
	}
	if b.database != nil {
		errs = append(errs, b.database.close())
	}
	if b.log != nil {
		errs = append(errs, b.log.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}
