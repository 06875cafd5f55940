package intents

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// The formats of the wire protocol.
const (
	textFormat   = 0
	binaryFormat = 1
)

// summaryColumns are the columns of a list in the order in which summaryReader reads them, with the format of each that costs least to
// read. Types of text are the same in both.
var (
	summaryColumns = []string{
		"id", "order_id", "batch_id", "deadline", "created_at", "updated_at",
		"environment", "type", "status", "signing", "source_chain", "source_token", "destination_chain", "destination_token",
		"source_account", "source_amount", "destination_account", "destination_amount", "reference", "hash", "labels",
	}
	summaryFormats = append(slices.Repeat([]int16{binaryFormat}, 6), slices.Repeat([]int16{textFormat}, 15)...)
)

// summaryReader is the connection of the one query that reads summaries. It reads the rows with pgx itself, because database/sql
// and bun scan each value by reflection, which takes more time than the rest of a list. It is for the Conn method of the query,
// so that bun's hooks see the statement; the query's Exec method fills rows.
type summaryReader struct {
	bun.IConn
	// db borrows a connection, unless conn has started a transaction.
	db   *postgres.DB
	conn *sql.Conn
	rows []transfer.Summary
	// text is memory for ownTexts.
	text []byte
}

// ExecContext implements bun.IConn. Like database/sql, it uses another connection if nothing could be sent on one.
func (r *summaryReader) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	if r.conn != nil {
		return r.result(r.conn.Raw(func(driver any) error {
			return r.read(ctx, driver.(*stdlib.Conn).Conn().PgConn(), query)
		}))
	}
	const retries = 2
	for attempt := 0; ; attempt++ {
		err := r.readFromPool(ctx, query)
		if attempt == retries || !pgconn.SafeToRetry(err) || ctx.Err() != nil {
			return r.result(err)
		}
	}
}

func (r *summaryReader) result(err error) (sql.Result, error) {
	return driver.RowsAffected(len(r.rows)), err
}

func (r *summaryReader) readFromPool(ctx context.Context, query string) error {
	conn, err := r.db.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return r.read(ctx, conn.Conn().PgConn(), query)
}

// read runs the query on a connection. The statement is unnamed, so it works through a pooler.
func (r *summaryReader) read(ctx context.Context, conn *pgconn.PgConn, query string) error {
	r.rows = r.rows[:0]
	batch := &pgconn.Batch{} // one transaction in one round trip
	batch.ExecParams(postgres.IndexOrder, nil, nil, nil, nil)
	batch.ExecParams(query, nil, nil, nil, summaryFormats)
	results := conn.ExecBatch(ctx, batch)
	var unreadable error
	for n := 0; results.NextResult(); n++ {
		result := results.ResultReader()
		for n > 0 && unreadable == nil && result.NextRow() {
			unreadable = r.append(result.Values())
		}
		_, _ = result.Close() // results has its error
	}
	return errors.Join(results.Close(), unreadable)
}

// append reads one row, whose values are valid until the next.
func (r *summaryReader) append(values [][]byte) (err error) {
	var last transfer.Summary
	if n := len(r.rows); n > 0 {
		last = r.rows[n-1]
	}
	s := transfer.Summary{ID: uuid.UUID(values[0]), OrderID: [32]byte(values[1])}
	if values[2] != nil {
		s.BatchID = uuid.UUID(values[2])
	}
	for n, at := range [...]*time.Time{&s.Deadline, &s.CreatedAt, &s.UpdatedAt} {
		if *at, err = timestamp(values[3+n]); err != nil {
			return fmt.Errorf("read transfer %s: %w", s.ID, err)
		}
	}
	s.Environment = network.Environment(shared(string(last.Environment), values[6]))
	s.Type = transfer.Type(shared(string(last.Type), values[7]))
	s.Status = transfer.Status(shared(string(last.Status), values[8]))
	s.Signing = wire.SigningScheme(shared(string(last.Signing), values[9]))
	if s.Source.Chain, err = sharedChain(last.Source.Chain, values[10]); err != nil {
		return fmt.Errorf("read the source of transfer %s: %w", s.ID, err)
	}
	s.Source.Token = shared(last.Source.Token, values[11])
	if s.Destination.Chain, err = sharedChain(last.Destination.Chain, values[12]); err != nil {
		return fmt.Errorf("read the destination of transfer %s: %w", s.ID, err)
	}
	s.Destination.Token = shared(last.Destination.Token, values[13])
	var labels string
	r.ownTexts(values[14:], &s.Source.Account, &s.Source.Amount, &s.Destination.Account, &s.Destination.Amount, &s.Reference, &s.Hash, &labels)
	s.Labels = wire.Labels(labels)
	r.rows = append(r.rows, s)
	return nil
}

// ownTexts sets the texts of which each row has its own, with one allocation.
func (r *summaryReader) ownTexts(values [][]byte, texts ...*string) {
	r.text = r.text[:0]
	for _, value := range values {
		r.text = append(r.text, value...)
	}
	all := string(r.text)
	for n, value := range values {
		*texts[n], all = all[:len(value)], all[len(value):]
	}
}

// sharedChain parses the id of a chain, unless it is the known one.
func sharedChain(known caip.ChainID, text []byte) (caip.ChainID, error) {
	if namespace := known.Namespace; namespace != "" && string(text) == namespace+":"+known.Reference {
		return known, nil
	}
	return caip.ParseChainID(string(text))
}

// shared returns the text, as the known string if they are equal.
func shared(known string, text []byte) string {
	if known == string(text) {
		return known
	}
	return string(text)
}

// postgresEpoch is 2000-01-01 UTC, from which Postgres counts microseconds, in microseconds since 1970.
const postgresEpoch = 946684800 * 1e6

// timestamp reads a timestamptz in binary format.
func timestamp(value []byte) (time.Time, error) {
	micro := int64(binary.BigEndian.Uint64(value)) //nolint:gosec // it is a signed number
	if micro == math.MinInt64 || micro == math.MaxInt64 {
		return time.Time{}, errors.New("a time is infinite")
	}
	return time.UnixMicro(micro + postgresEpoch).UTC(), nil
}
