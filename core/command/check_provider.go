package command

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/chains/evm"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/transfer"
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
	problems []string
}

func (f *finding) problem(form string, args ...any) {
	f.problems = append(f.problems, strings.ReplaceAll(fmt.Sprintf(form, args...), f.host+": ", ""))
}

// checkProvider makes the calls that the watcher makes. definition is nil for a chain that is not registered.
func checkProvider(ctx context.Context, id, name string, p *rpc.Provider, definition *chain.Chain) finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	f := finding{chain: id, name: name, host: p.Host()}
	if definition == nil {
		f.problem("the chain is not registered: core chains import")
		definition = &chain.Chain{Finality: chain.Depth}
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
	address := common.HexToAddress("0x000000000000000000000000000000000000dEaD")
	if definition.Settler != nil {
		address = common.HexToAddress(definition.Settler.Address)
		f.checkSettler(ctx, p, address, definition.Domain)
	}
	f.checkLogs(ctx, p, address)
	return f
}

// ask sends one batch, again after a pause where the provider limits its rate. The error is of the batch or of the first call that has
// one.
func ask(ctx context.Context, p *rpc.Provider, calls ...rpc.Request) error {
	for pause, n := time.Second, 0; ; pause, n = 2*pause, n+1 {
		err := p.Do(ctx, calls...)
		if i := slices.IndexFunc(calls, func(c rpc.Request) bool { return c.Err() != nil }); err == nil && i >= 0 {
			err = calls[i].Err()
		}
		if !errors.Is(err, rpc.ErrRate) || n == rateRetries {
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
func (f *finding) checkTags(ctx context.Context, p *rpc.Provider, finality chain.Finality) {
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
	f.safe = has(rpc.Safe, finality == chain.Safe)
	f.finalized = has(rpc.Finalized, finality != chain.Depth)
}

// checkSettler asks in one batch, as the watcher does, whether the contract is the settler of the chain's domain.
func (f *finding) checkSettler(ctx context.Context, p *rpc.Provider, settler common.Address, domain uint32) {
	code := rpc.Code(settler, rpc.Latest)
	local := rpc.CallContract(rpc.Message{To: settler, Data: crypto.Keccak256([]byte("localDomain()"))[:4]}, rpc.Latest)
	status := rpc.CallContract(rpc.Message{To: settler, Data: transfer.OrderStatusCall([32]byte{})}, rpc.Latest)
	if err := p.Do(ctx, code, local, status); err != nil {
		f.problem("a batch of three calls: %v", err)
		return
	}
	text, err := code.Result()
	switch {
	case err != nil:
		f.problem("code of the settler %s: %v", settler, err)
		return
	case len(text) == 0:
		f.problem("no code at the settler %s", settler)
		return
	}
	answer, err := local.Result()
	want := binary.BigEndian.AppendUint32(make([]byte, 28), domain)
	switch {
	case err != nil:
		f.problem("localDomain() of the settler: %v", err)
	case len(answer) == 32 && bytes.Equal(answer[:28], want[:28]) && !bytes.Equal(answer, want):
		f.problem("localDomain() of the settler is %d, and the chain's domain %d", binary.BigEndian.Uint32(answer[28:]), domain)
	case !bytes.Equal(answer, want):
		f.problem("localDomain() of the settler answers 0x%x, and the chain's domain is %d", answer[:min(len(answer), 32)], domain)
	}
	answer, err = status.Result()
	switch {
	case err != nil:
		f.problem("orderStatus(0x0) of the settler: %v", err)
	case !bytes.Equal(answer, make([]byte, 32)):
		f.problem("orderStatus(0x0) of the settler answers 0x%x, not zeros", answer[:min(len(answer), 32)])
	}
}

// checkLogs finds the largest range of blocks up to the head that eth_getLogs accepts.
func (f *finding) checkLogs(ctx context.Context, p *rpc.Provider, address common.Address) {
	var call *rpc.Call[[]evm.Log]
	for _, size := range logRanges {
		size = min(size, f.head+1)
		call = rpc.Logs(rpc.LogFilter{From: f.head + 1 - size, To: f.head, Addresses: []common.Address{address}, Topics: [][]common.Hash{transfer.SettlerTopics}})
		if ask(ctx, p, call) == nil {
			f.logRange = size
			return
		}
	}
	f.problem("events of %d blocks: %v", logRanges[len(logRanges)-1], call.Err())
}
