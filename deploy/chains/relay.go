package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"intents.internal/deploy/chains/contracts"
)

const (
	// relayDepth is the number of confirmations of a fill, in blocks of about one second.
	relayDepth = 2
	// relaySaveEvery bounds how many blocks are read again after a restart.
	relaySaveEvery = 10
)

// relay carries proofs from one chain to another: it reads the fills of one chain's output settler, and the owner attests them at
// the other chain's oracle. A fill may be attested twice, which changes nothing.
type relay struct {
	from, to *chain
	log      *slog.Logger
	next     uint64 // first block with fills that may not be attested
	saved    uint64
}

// relays returns one relay for each direction.
func relays(chains []*chain, log *slog.Logger) (all []*relay) {
	for _, from := range chains {
		for _, to := range chains {
			if from != to {
				all = append(all, &relay{from: from, to: to, log: log.With("from", from.name(), "to", to.name())})
			}
		}
	}
	return all
}

// run attests fills until ctx ends. It fails only if it cannot read its saved position.
func (r *relay) run(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(blockTime / 2)
	defer tick.Stop()
	for {
		if err := r.forward(ctx); err != nil && ctx.Err() == nil {
			r.log.Error("fills were not attested and are tried again", "block", r.next, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// forward attests the fills of all blocks with enough confirmations, and advances once the attestations are in blocks.
func (r *relay) forward(ctx context.Context) error {
	head, err := r.from.client.BlockNumber(ctx)
	if err != nil {
		return fmt.Errorf("read the newest block's number: %w", err)
	}
	if head < r.next+relayDepth {
		return nil
	}
	last := head - relayDepth
	logs, err := r.from.client.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(r.next), ToBlock: new(big.Int).SetUint64(last),
		Addresses: []common.Address{outputSettler}, Topics: [][]common.Hash{{outputContract.ABI.Events["OutputFilled"].ID}},
	})
	if err != nil {
		return fmt.Errorf("read the logs from block %d to %d: %w", r.next, last, err)
	}
	var sent []common.Hash
	for _, log := range logs {
		hash, err := r.attest(ctx, log)
		if err != nil {
			return err
		}
		if hash != (common.Hash{}) {
			sent = append(sent, hash)
		}
	}
	if err := r.to.succeeded(ctx, sent); err != nil && !errors.Is(err, errReverted) {
		return err
	}
	r.next = last + 1
	return r.save()
}

// attest sends the attestation of a fill. It sends none, and returns the zero hash, for an output with another oracle, which a swap
// has, and for a fill that the oracle refuses, because it must not block the others.
func (r *relay) attest(ctx context.Context, fill types.Log) (common.Hash, error) {
	values, err := outputContract.ABI.Events["OutputFilled"].Inputs.NonIndexed().Unpack(fill.Data)
	if err != nil {
		return common.Hash{}, fmt.Errorf("decode the fill of transaction %s: %w", fill.TxHash, err)
	}
	order, solver, timestamp := fill.Topics[1], values[0], values[1]
	output := *abi.ConvertType(values[2], new(contracts.MandateOutput)).(*contracts.MandateOutput) //nolint:forcetypeassert // the type is asked for
	if output.Oracle != contracts.Word(oracle) {
		return common.Hash{}, nil
	}
	data, err := oracleContract.ABI.Pack("setAttestation", order, solver, timestamp, output)
	if err != nil {
		return common.Hash{}, fmt.Errorf("encode setAttestation: %w", err)
	}
	hash, err := r.to.owner.send(ctx, call{to: &oracle, data: data})
	if _, refused := errors.AsType[rpc.Error](err); refused {
		r.log.Warn("the oracle refuses a fill", "order", order, "error", err)
		return common.Hash{}, nil
	}
	if err == nil {
		r.log.Info("fill attested", "order", order, "transaction", hash)
	}
	return hash, err
}

func (r *relay) file() string {
	return filepath.Join(r.from.dir, fmt.Sprintf("relayed-to-%d", r.to.id))
}

// load reads the saved position. It returns at most the newest block: a killed process loses its newest block, and the
// transactions of that block may then be in another one.
func (r *relay) load(ctx context.Context) error {
	text, err := os.ReadFile(r.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.next, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil { // the machine failed while it was written
		r.log.Warn("all fills are read again", "error", err)
		return nil
	}
	head, err := r.from.client.BlockNumber(ctx)
	if err != nil {
		return fmt.Errorf("read the newest block's number: %w", err)
	}
	r.next = min(r.next, head)
	r.saved = r.next
	return nil
}

func (r *relay) save() error {
	if r.next < r.saved+relaySaveEvery {
		return nil
	}
	fresh := r.file() + ".new"
	if err := os.WriteFile(fresh, []byte(strconv.FormatUint(r.next, 10)+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.Rename(fresh, r.file()); err != nil {
		return err
	}
	r.saved = r.next
	return nil
}
