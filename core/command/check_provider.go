package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

const (
	// checkTimeout bounds all checks of one provider.
	checkTimeout = time.Minute
	// rateRetries is how often a call is retried that the provider rejected for its rate.
	rateRetries = 3
)

// logRanges are the block ranges that the check of eth_getLogs tries.
var logRanges = []uint64{10_000, 5_000, 2_000, 1_000, 500, 100, 50}

// finding is what one provider of a chain answered.
type finding struct {
	chain, name, host string
	// answered is false for a provider that did not return its chain id; then only the problems are known.
	answered        bool
	latency, age    time.Duration
	head            uint64
	safe, finalized bool
	// logRange is the largest of logRanges that works, or the whole of a shorter chain.
	logRange uint64
	// signing tells of each settlement which schemes of signing are proven, and notes what is no fault and worth knowing.
	signing  []string
	problems []string
	notes    []string
}

func (f *finding) problem(form string, args ...any) {
	f.problems = append(f.problems, strings.ReplaceAll(fmt.Sprintf(form, args...), f.host+": ", ""))
}

// checkProvider makes the calls that the watcher makes. definition is nil for a chain that is not registered; tokens are those of the chain.
func checkProvider(ctx context.Context, id, name string, p *rpc.Provider, definition *registry.Chain, tokens []registry.Token) finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	f := finding{chain: id, name: name, host: p.Host()}
	if definition == nil {
		f.problem("the chain is not registered: core chains import")
		definition = &registry.Chain{Finality: registry.Depth}
	}
	if err := ask(ctx, p, rpc.ChainID()); err != nil {
		f.problem("%v", err)
		return f
	}
	latest, began := rpc.BlockByNumber(rpc.Latest), time.Now()
	if err := ask(ctx, p, latest); err != nil {
		f.problem("%v", err)
		return f
	}
	f.latency = time.Since(began)
	head, _ := latest.Result()
	if head == nil {
		f.problem("the node has no latest block")
		return f
	}
	f.answered, f.head, f.age = true, head.Number, max(0, time.Since(head.Time))
	f.checkTags(ctx, p, definition.Finality)
	f.checkSettlements(ctx, p, definition, tokens)
	f.checkLogs(ctx, p, settlers(definition.Settlements))
	return f
}

// settlers are the contracts whose events the watcher reads, or an address without events for a chain that has none.
func settlers(settlements []registry.Settlement) []common.Address {
	if len(settlements) == 0 {
		return []common.Address{common.HexToAddress("0x000000000000000000000000000000000000dEaD")}
	}
	var addresses []common.Address
	for _, s := range settlements {
		addresses = append(addresses, common.HexToAddress(s.InputSettler), common.HexToAddress(s.OutputSettler))
	}
	return addresses
}

// ask sends calls in one batch, and those that the provider rejects for its rate again after a pause. The error is of the last batch or
// of its first call that has one.
func ask(ctx context.Context, p *rpc.Provider, calls ...rpc.Request) error {
	for pause, n := time.Second, 0; ; pause, n = 2*pause, n+1 {
		err := p.Do(ctx, calls...)
		if i := slices.IndexFunc(calls, func(c rpc.Request) bool { return c.Err() != nil }); err == nil && i >= 0 {
			err = calls[i].Err()
		}
		calls = slices.DeleteFunc(slices.Clone(calls), func(c rpc.Request) bool { return !errors.Is(c.Err(), rpc.ErrRate) })
		if len(calls) == 0 || n == rateRetries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause + 100*time.Millisecond):
		}
	}
}

// checkTags asks for the block tags. One that the node does not know is a fault where the chain's finality needs it.
func (f *finding) checkTags(ctx context.Context, p *rpc.Provider, finality registry.Finality) {
	has := func(tag rpc.BlockID, needed bool) bool {
		call := rpc.BlockByNumber(tag)
		err := ask(ctx, p, call)
		if block, _ := call.Result(); err == nil && block != nil {
			return true
		}
		if needed {
			f.problem("no block tag %s, which finality %s needs", tag, finality)
		}
		return false
	}
	f.safe = has(rpc.Safe, finality == registry.Safe)
	f.finalized = has(rpc.Finalized, finality != registry.Depth)
}

// checkLogs finds the largest range of blocks up to the head that eth_getLogs accepts.
func (f *finding) checkLogs(ctx context.Context, p *rpc.Provider, addresses []common.Address) {
	var call *rpc.Call[[]evm.Log]
	for _, size := range logRanges {
		size = min(size, f.head+1)
		call = rpc.Logs(rpc.LogFilter{From: f.head + 1 - size, To: f.head, Addresses: addresses, Topics: [][]common.Hash{transfer.SettlerTopics}})
		if ask(ctx, p, call) == nil {
			f.logRange = size
			return
		}
	}
	f.problem("events of %d blocks: %v", logRanges[len(logRanges)-1], call.Err())
}
