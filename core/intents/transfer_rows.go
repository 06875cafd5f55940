package intents

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
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
		"id", "type", "status", "order_id", "source_chain", "source_amount", "destination_amount", "reference", "batch_id", "signing", "hash",
		"created_at", "updated_at",
	}
	summaryFormats = []int16{
		binaryFormat, textFormat, textFormat, binaryFormat, textFormat, textFormat, textFormat, textFormat, binaryFormat, textFormat, textFormat,
		binaryFormat, binaryFormat,
	}
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
	s := transfer.Summary{
		ID: uuid.UUID(values[0]), OrderID: [32]byte(values[3]), Chain: last.Chain,
		Type: transfer.Type(shared(string(last.Type), values[1])), Status: transfer.Status(shared(string(last.Status), values[2])),
		SourceAmount: string(values[5]), Reference: string(values[7]),
		Signing: wire.SigningScheme(shared(string(last.Signing), values[9])), Hash: string(values[10]),
	}
	if values[8] != nil {
		s.BatchID = uuid.UUID(values[8])
	}
	s.DestinationAmount = shared(s.SourceAmount, values[6])
	if namespace := s.Chain.Namespace; namespace == "" || string(values[4]) != namespace+":"+s.Chain.Reference {
		if s.Chain, err = caip.ParseChainID(string(values[4])); err != nil {
			return fmt.Errorf("read transfer %s: %w", s.ID, err)
		}
	}
	if s.CreatedAt, err = timestamp(values[11]); err != nil {
		return fmt.Errorf("read transfer %s: %w", s.ID, err)
	}
	if s.UpdatedAt, err = timestamp(values[12]); err != nil {
		return fmt.Errorf("read transfer %s: %w", s.ID, err)
	}
	r.rows = append(r.rows, s)
	return nil
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
