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
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	// relayDepth is the number of confirmations of a message, in blocks of about one second.
	relayDepth = 2
	// relaySaveEvery bounds how many blocks are read again after a restart.
	relaySaveEvery = 10
)

// relay is the bridge from one settler to another: it reads the Settle and Refund messages of one, and the owner delivers them to
// the other. A message may be delivered twice; the settler ignores the second delivery.
type relay struct {
	from, to *chain
	log      *slog.Logger
	next     uint64 // first block with messages that may be undelivered
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

// run delivers messages until ctx ends. It fails only if it cannot read its saved position.
func (r *relay) run(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(blockTime / 2)
	defer tick.Stop()
	for {
		if err := r.forward(ctx); err != nil && ctx.Err() == nil {
			r.log.Error("messages were not delivered and are tried again", "block", r.next, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// forward delivers the messages of all blocks with enough confirmations, and advances once the deliveries are in blocks.
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
		Addresses: []common.Address{settlerAddress},
		Topics:    [][]common.Hash{{settlerContract.ABI.Events["Settle"].ID, settlerContract.ABI.Events["Refund"].ID}},
	})
	if err != nil {
		return fmt.Errorf("read the logs from block %d to %d: %w", r.next, last, err)
	}
	var sent []common.Hash
	for _, log := range logs {
		hashes, err := r.deliver(ctx, log)
		if err != nil {
			return err
		}
		sent = append(sent, hashes...)
	}
	if err := r.to.succeeded(ctx, sent); err != nil && !errors.Is(err, errReverted) {
		return err
	}
	r.next = last + 1
	return r.save()
}

// deliver sends a message's orders one by one, because an order that cannot be paid must not block the others. It skips orders
// that are not open at the receiver.
func (r *relay) deliver(ctx context.Context, message types.Log) (sent []common.Hash, err error) {
	var content struct {
		OrderIDs         [][32]byte `abi:"orderIds"`
		OrdersFillerData [][]byte
	}
	event, err := settlerContract.ABI.EventByID(message.Topics[0])
	if err != nil {
		return nil, err
	}
	if err := settlerContract.ABI.UnpackIntoInterface(&content, event.Name, message.Data); err != nil {
		return nil, fmt.Errorf("decode %s of transaction %s: %w", event.Name, message.TxHash, err)
	}
	filled := event.Name == "Settle"
	for i, id := range content.OrderIDs {
		status, err := r.to.orderStatus(ctx, id)
		if err != nil {
			return nil, err
		}
		if status != "OPENED" {
			continue
		}
		fillerData := []byte{}
		if filled {
			fillerData = content.OrdersFillerData[i]
		}
		data, err := settlerContract.ABI.Pack("deliver",
			r.from.id, common.BytesToHash(settlerAddress.Bytes()), filled, [][32]byte{id}, [][]byte{fillerData})
		if err != nil {
			return nil, fmt.Errorf("encode deliver: %w", err)
		}
		hash, err := r.to.owner.send(ctx, call{to: &settlerAddress, data: data})
		if _, refused := errors.AsType[rpc.Error](err); refused {
			r.log.Warn("the settler refuses a message", "order", common.Hash(id), "message", event.Name, "error", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		r.log.Info("message sent", "order", common.Hash(id), "message", event.Name, "transaction", hash)
		sent = append(sent, hash)
	}
	return sent, nil
}

// orderStatus is an order's status at the chain's settler, empty for an unknown order.
func (c *chain) orderStatus(ctx context.Context, id common.Hash) (string, error) {
	settler := bind.NewBoundContract(settlerAddress, settlerContract.ABI, c.client, nil, nil)
	var results []any
	if err := settler.Call(&bind.CallOpts{Context: ctx}, &results, "orderStatus", id); err != nil {
		return "", fmt.Errorf("read the status of order %s: %w", id, err)
	}
	status := results[0].([32]byte)
	return strings.TrimRight(string(status[:]), "\x00"), nil
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
		r.log.Warn("all messages are read again", "error", err)
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
