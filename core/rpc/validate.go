package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
)

// An answer is validated where it enters: what contradicts itself, or what no chain can have, is ErrMalformed, the fault of the provider.

// maxClockSkew is how far the clock of a chain may be ahead of ours.
const maxClockSkew = 5 * time.Minute

func checkBlock(b *evm.Block) error {
	if ahead := time.Until(b.Time); ahead > maxClockSkew {
		return fmt.Errorf("block %d is of %s, %v after this machine's clock", b.Number, b.Time.Format(time.RFC3339), ahead.Round(time.Second))
	}
	return nil
}

// logPlace is where a log is.
type logPlace struct {
	block uint64
	index uint
}

// checkLogs returns logs without those that are there twice, and an error if two different ones have one place, or one block two hashes.
func checkLogs(logs []evm.Log) ([]evm.Log, error) {
	hashes := make(map[uint64]common.Hash, len(logs))
	places := make(map[logPlace]int, len(logs))
	unique := make([]evm.Log, 0, len(logs))
	for _, l := range logs {
		if hash, known := hashes[l.BlockNumber]; known && hash != l.BlockHash {
			return nil, fmt.Errorf("block %d has two hashes", l.BlockNumber)
		}
		hashes[l.BlockNumber] = l.BlockHash
		place := logPlace{l.BlockNumber, l.Index}
		n, known := places[place]
		switch {
		case !known:
			places[place] = len(unique)
			unique = append(unique, l)
		case unique[n].TxHash != l.TxHash || !unique[n].Same(l):
			return nil, fmt.Errorf("block %d has two logs with index %d", l.BlockNumber, l.Index)
		}
	}
	return unique, nil
}

func checkReceipt(r *evm.Receipt) (err error) {
	r.Logs, err = checkLogs(r.Logs)
	return err
}

// Head is the newest block of a node, with other blocks of the same moment.
type Head struct {
	evm.Block
	// Others are the blocks that were asked for besides, without those that the node does not have or know by that tag.
	Others map[BlockID]*evm.Block
}

// ReadHead reads the newest block and others in one request.
func ReadHead(ctx context.Context, p *Provider, others ...BlockID) (h Head, err error) {
	ids := append([]BlockID{Latest}, others...)
	answers, err := FetchEach(ctx, p, ids, BlockByNumber)
	if err != nil {
		return h, err
	}
	if answers[0].Err != nil {
		return h, answers[0].Err
	}
	if answers[0].Value == nil {
		return h, fmt.Errorf("%s: the newest block: %w", p.host, ErrMissing)
	}
	h.Block, h.Others = *answers[0].Value, map[BlockID]*evm.Block{}
	for n, id := range others {
		block, failure := answers[n+1].Value, answers[n+1].Err
		_, byTag := tags[id]
		switch {
		case failure != nil && !byTag && !errors.Is(failure, ErrMissing):
			return h, failure
		case failure != nil || block == nil:
		case byTag && block.Number > h.Number:
			return h, p.contradiction(fmt.Errorf("the block of the tag %s is %d, after the newest one, %d", id, block.Number, h.Number))
		case block.Number == h.Number && block.Hash != h.Hash:
			return h, p.contradiction(fmt.Errorf("block %d has two hashes", h.Number))
		default:
			h.Others[id] = block
		}
	}
	return h, nil
}

// ReadRange reads logs and the last block of their range in one request, because a node that lacks the block returns no logs. Without
// addresses it reads the block alone. It returns ErrMissing if the node lacks the block.
func ReadRange(ctx context.Context, p *Provider, filter LogFilter) (logs []evm.Log, last *evm.Block, err error) {
	found, block := Logs(filter), BlockByNumber(Number(filter.To))
	requests := []Request{found, block}
	if len(filter.Addresses) == 0 {
		requests = requests[1:]
	}
	_ = p.Do(ctx, requests...) // Result returns the same error
	if len(filter.Addresses) > 0 {
		if logs, err = found.Result(); err != nil {
			return nil, nil, err
		}
	}
	last, err = block.Result()
	if err == nil && last == nil {
		err = fmt.Errorf("%s: block %d: %w", p.host, filter.To, ErrMissing)
	}
	if err != nil {
		return nil, nil, err
	}
	if n := slices.IndexFunc(logs, func(l evm.Log) bool { return l.BlockNumber == last.Number && l.BlockHash != last.Hash }); n >= 0 {
		return nil, nil, p.contradiction(fmt.Errorf("a log is of another block %d than the one on the chain", last.Number))
	}
	return logs, last, nil
}

// ReadIdentified reads a block and the chain id of the node in one request, and returns ErrWrongChain if that is another chain's.
func ReadIdentified(ctx context.Context, p *Provider, number uint64) (*evm.Block, error) {
	id, block := ChainID(), BlockByNumber(Number(number))
	if err := p.Do(ctx, id, block); err != nil {
		return nil, err
	}
	served, err := id.Result()
	if err != nil {
		return nil, err
	}
	if err := p.identify(served); err != nil {
		return nil, err
	}
	return block.Result()
}

// contradiction is the error of a response whose parts contradict each other. It counts against the provider.
func (p *Provider) contradiction(err error) error {
	p.health.fail(false, 0)
	p.verified.expire()
	return fmt.Errorf("%s: %w", p.host, p.malformed(err))
}

// hostOf is the host of a URL in one spelling: two URLs of one host are one provider's.
func hostOf(address *url.URL) string {
	host, port := strings.TrimSuffix(strings.ToLower(address.Hostname()), "."), address.Port()
	if port == "" || port == defaultPorts[address.Scheme] {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, port)
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}
