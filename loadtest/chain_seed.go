package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

// fill inserts the open intents by COPY: of ten, six wait for their fill, two have an attempt that is in no block, two were not
// sent yet.
func (b *chainBench) fill(ctx context.Context) (err error) {
	fmt.Printf("storing %d open intents\n", b.intents)
	conn, err := pgx.Connect(ctx, b.server.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := b.copyOpenIntents(ctx, conn); err != nil {
		return err
	}
	if err := b.copyTransactions(ctx, conn); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "VACUUM ANALYZE transfers, transactions")
	return err
}

// kindOf returns the status of the n-th open intent.
func kindOf(n int) transfer.Status {
	switch n % 10 {
	case 0, 1:
		return transfer.Created
	case 2, 3:
		return transfer.Submitted
	default:
		return transfer.Confirmed
	}
}

func (b *chainBench) chainsOf(n int) (source, destination *scriptedChain) {
	return b.chains[n%len(b.chains)], b.chains[(n+1)%len(b.chains)]
}

func syntheticHash(n int) (hash common.Hash) {
	binary.BigEndian.PutUint64(hash[:], uint64(n)+1) //nolint:gosec // positive
	return hash
}

func (b *chainBench) copyOpenIntents(ctx context.Context, conn *pgx.Conn) error {
	columns := []string{
		"id", "account_id", "key_id", "environment", "type", "status", "order_id", "order_scheme", "source_chain", "source_account", "source_token", "source_amount",
		"destination_chain", "destination_account", "destination_token", "destination_amount",
		"deployment", "origin_settler", "destination_settler", "input_oracle", "output_oracle", "deadline", "expires", "hash", "created_at", "updated_at",
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"transfers"}, columns, pgx.CopyFromSlice(b.intents, func(n int) ([]any, error) {
		source, destination := b.chainsOf(n)
		created, deadline := now.Add(-time.Duration(n)*time.Millisecond), now.Add(24*time.Hour)
		var hash *string
		if kindOf(n) != transfer.Created {
			text := syntheticHash(n).Hex()
			hash = &text
		}
		return []any{
			syntheticID(created, n), b.account, b.account, "test", "bridge", string(kindOf(n)), syntheticOrder(n), registry.StandardOrder,
			source.id.String(), chainSender, registry.NativeAddress, "1", destination.id.String(), chainRecipient, registry.NativeAddress, "1",
			chainDeployment, chainInputSettler, chainOutputSettler, chainOracle, chainOracle,
			deadline, deadline.Add(registry.DefaultClaimPeriod * time.Second), hash, created, created,
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("copy the open intents: %w", err)
	}
	return nil
}

// copyTransactions inserts the attempts: opened orders in an old block that are compared with the input settler within the hour, and
// attempts that are in no block and are looked up within ten minutes.
func (b *chainBench) copyTransactions(ctx context.Context, conn *pgx.Conn) error {
	columns := []string{
		"account_id", "transfer_id", "chain_id", "hash", "role", "state", "reported", "block_number", "block_hash", "log_index", "confirmed_at",
		"sender", "nonce", "seen_at", "due_at",
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	sender := common.HexToAddress(chainSender)
	n := -1
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"transactions"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		for n++; n < b.intents && kindOf(n) == transfer.Created; n++ {
		}
		if n >= b.intents {
			return nil, nil
		}
		source, _ := b.chainsOf(n)
		hash := syntheticHash(n)
		row := []any{b.account, syntheticID(now.Add(-time.Duration(n)*time.Millisecond), n), source.id.String(), hash[:], "open"}
		if kindOf(n) == transfer.Submitted {
			due := now.Add(time.Duration(n%600) * time.Second)
			return append(row, "pending", true, nil, nil, nil, nil, sender[:], n, now.Add(-time.Hour), due), nil
		}
		block := source.Block(openedBlock)
		due := now.Add(time.Duration(n%3600) * time.Second)
		return append(row, "mined", false, int64(openedBlock), block.Hash[:], int64(n), now, nil, nil, now.Add(-time.Hour), due), nil
	}))
	if err != nil {
		return fmt.Errorf("copy the transactions: %w", err)
	}
	return nil
}
