package intents

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"intents.internal/core/postgres"
)

// insertColumn is a column of new intents. Its values are one parameter of the insert, an array of elements in Postgres's binary
// format.
type insertColumn struct {
	name string
	// array and element are the object ids of the types of the parameter and its elements, and parameter is its name in SQL.
	array, element uint32
	parameter      string
	// cast follows the value in the SELECT, empty for none.
	cast string
	// value appends a row's element.
	value func([]byte, *TransferRow) []byte
}

func uuidColumn(name string, of func(*TransferRow) *uuid.UUID) insertColumn {
	return insertColumn{name: name, array: pgtype.UUIDArrayOID, element: pgtype.UUIDOID, parameter: "uuid[]", value: func(b []byte, row *TransferRow) []byte {
		return append(appendLength(b, 16), of(row)[:]...)
	}}
}

func textColumn(name string, of func(*TransferRow) string) insertColumn {
	return insertColumn{name: name, array: pgtype.TextArrayOID, element: pgtype.TextOID, parameter: "text[]", value: func(b []byte, row *TransferRow) []byte {
		text := of(row)
		return append(appendLength(b, len(text)), text...)
	}}
}

// nullableTextColumn has NULL for an empty text.
func nullableTextColumn(name string, of func(*TransferRow) string) insertColumn {
	column := textColumn(name, of)
	value := column.value
	column.value = func(b []byte, row *TransferRow) []byte {
		if of(row) == "" {
			return appendNull(b)
		}
		return value(b, row)
	}
	return column
}

// numericColumn passes the digits as text: Postgres parses them exactly, and about as fast as its binary format of numbers.
func numericColumn(name string, of func(*TransferRow) string) insertColumn {
	column := textColumn(name, of)
	column.cast = "::numeric"
	return column
}

// bytesColumn has NULL for nil.
func bytesColumn(name string, of func(*TransferRow) []byte) insertColumn {
	return insertColumn{name: name, array: pgtype.ByteaArrayOID, element: pgtype.ByteaOID, parameter: "bytea[]", value: func(b []byte, row *TransferRow) []byte {
		if of(row) == nil {
			return appendNull(b)
		}
		return append(appendLength(b, len(of(row))), of(row)...)
	}}
}

// timeColumn has NULL for no time.
func timeColumn(name string, of func(*TransferRow) time.Time) insertColumn {
	return insertColumn{name: name, array: pgtype.TimestamptzArrayOID, element: pgtype.TimestamptzOID, parameter: "timestamptz[]", value: func(b []byte, row *TransferRow) []byte {
		if of(row).IsZero() {
			return appendNull(b)
		}
		return binary.BigEndian.AppendUint64(appendLength(b, 8), uint64(of(row).UnixMicro()-postgresEpoch)) //nolint:gosec // two's complement, as in the format
	}}
}

func appendLength(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // bounded by a request's field or the number of rows
}

func appendNull(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff) }

// insertColumns are the columns of a new intent that differ from row to row. It has no hash, failure, cancelled_at or refundable_at.
var insertColumns = []insertColumn{
	uuidColumn("account_id", func(r *TransferRow) *uuid.UUID { return &r.AccountID }),
	uuidColumn("id", func(r *TransferRow) *uuid.UUID { return &r.ID }),
	uuidColumn("key_id", func(r *TransferRow) *uuid.UUID { return &r.KeyID }),
	textColumn("environment", func(r *TransferRow) string { return string(r.Environment) }),
	textColumn("type", func(r *TransferRow) string { return string(r.Type) }),
	textColumn("status", func(r *TransferRow) string { return string(r.Status) }),
	bytesColumn("order_id", func(r *TransferRow) []byte { return r.OrderID }),
	textColumn("order_scheme", func(r *TransferRow) string { return r.OrderScheme }),
	textColumn("source_chain", func(r *TransferRow) string { return r.SourceChain }),
	textColumn("source_account", func(r *TransferRow) string { return r.SourceAccount }),
	textColumn("source_token", func(r *TransferRow) string { return r.SourceToken }),
	numericColumn("source_amount", func(r *TransferRow) string { return r.SourceAmount }),
	textColumn("destination_chain", func(r *TransferRow) string { return r.DestinationChain }),
	textColumn("destination_account", func(r *TransferRow) string { return r.DestinationAccount }),
	textColumn("destination_token", func(r *TransferRow) string { return r.DestinationToken }),
	numericColumn("destination_amount", func(r *TransferRow) string { return r.DestinationAmount }),
	nullableTextColumn("deployment", func(r *TransferRow) string { return r.Deployment }),
	textColumn("origin_settler", func(r *TransferRow) string { return r.InputSettler }),
	textColumn("destination_settler", func(r *TransferRow) string { return r.OutputSettler }),
	nullableTextColumn("input_oracle", func(r *TransferRow) string { return r.InputOracle }),
	nullableTextColumn("output_oracle", func(r *TransferRow) string { return r.OutputOracle }),
	timeColumn("expires", func(r *TransferRow) time.Time { return r.Expires }),
	timeColumn("deadline", func(r *TransferRow) time.Time { return r.Deadline }),
	nullableTextColumn("reference", func(r *TransferRow) string { return r.Reference }),
	nullableTextColumn("signing", func(r *TransferRow) string { return string(r.Signing) }),
	nullableTextColumn("idempotency_key", func(r *TransferRow) string { return r.IdempotencyKey }),
}

// labelledColumns are insertColumns and the labels.
var labelledColumns = append(slices.Clone(insertColumns), nullableTextColumn("labels", func(r *TransferRow) string { return string(r.Labels) }))

// transferInsert inserts intents and their first events, and returns id and created_at of the intents that are new. The rows are inserted in
// the order of the arrays.
type transferInsert struct {
	columns []insertColumn
	types   []uint32
	// statement skips rows whose idempotency key an intent has. It violates the unique index, and writes nothing, if two rows have the same
	// key or another transaction inserts the key at the same time.
	statement string
	// orSkip is for those cases: it skips all but the first row with a key. ON CONFLICT takes a lock and a second log record for each row,
	// which makes it a tenth dearer.
	orSkip string
	// name is that under which the statement is prepared. It contains the statement's hash, so that another release's statement is never run
	// instead.
	name string
}

func newTransferInsert(columns []insertColumn) *transferInsert {
	statement := insertStatement(columns, insertOptions{rest: `WHERE idempotency_key IS NULL OR (SELECT id FROM transfers AS old
			WHERE old.account_id = new.account_id AND old.environment = new.environment AND old.idempotency_key = new.idempotency_key) IS NULL`})
	return &transferInsert{
		columns: columns, types: parameterTypes(columns), statement: statement,
		orSkip: insertStatement(columns, insertOptions{
			rest: `ON CONFLICT (account_id, environment, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING`,
		}),
		name: fmt.Sprintf("insert_transfers_%.8x", sha256.Sum256([]byte(statement))),
	}
}

// insertPlain is for rows without labels, which cost nothing there, and insertLabelled for all.
var (
	insertPlain    = newTransferInsert(insertColumns)
	insertLabelled = newTransferInsert(labelledColumns)
)

// insertOf returns the insert for rows.
func insertOf(rows []*TransferRow) *transferInsert {
	if slices.ContainsFunc(rows, func(row *TransferRow) bool { return row.Labels != "" }) {
		return insertLabelled
	}
	return insertPlain
}

// insertOptions are the parts in which statements that insert intents differ; all may be empty.
type insertOptions struct {
	// with is a part of the WITH before the insert, and from its name in the FROM; each ends with a comma.
	with, from string
	// column is a further column and value its value; each begins with a comma.
	column, value string
	// rest follows the FROM.
	rest string
}

func insertStatement(columns []insertColumn, o insertOptions) string {
	var names, values, parameters []string
	for n, column := range columns {
		names = append(names, column.name)
		values = append(values, column.name+column.cast)
		parameters = append(parameters, fmt.Sprintf("$%d::%s", n+1, column.parameter))
	}
	list := strings.Join(names, ", ")
	return `WITH ` + o.with + `inserted AS (
			INSERT INTO transfers (` + list + o.column + `, created_at, updated_at)
			SELECT ` + strings.Join(values, ", ") + o.value + `, statement_timestamp(), statement_timestamp()
			FROM ` + o.from + `unnest(` + strings.Join(parameters, ", ") + `) AS new (` + list + `)
			` + o.rest + `
			RETURNING id, account_id, environment, status, created_at
		), new_events AS (
			INSERT INTO events (account_id, transfer_id, environment, to_status, occurred_at, sequence)
			SELECT account_id, id, environment, status, created_at, 1 FROM inserted
		) SELECT id, created_at FROM inserted`
}

// parameterTypes are the object ids of the types of the parameters.
func parameterTypes(columns []insertColumn) (types []uint32) {
	for _, column := range columns {
		types = append(types, column.array)
	}
	return types
}

// allBinary is the format of all parameters and columns.
var allBinary = []int16{binaryFormat}

// encodeInsert is the parameters of an insert for rows.
func encodeInsert(columns []insertColumn, rows []*TransferRow) [][]byte {
	const rowSize = 704 // of a row with a reference
	buffer := make([]byte, 0, len(columns)*20+len(rows)*rowSize)
	ends := make([]int, len(columns))
	for n, column := range columns {
		buffer = appendLength(buffer, 1) // dimension
		buffer = appendLength(buffer, 1) // NULLs are possible
		buffer = appendLength(buffer, int(column.element))
		buffer = appendLength(buffer, len(rows))
		buffer = appendLength(buffer, 1) // index of the first element
		for _, row := range rows {
			buffer = column.value(buffer, row)
		}
		ends[n] = len(buffer)
	}
	parameters := make([][]byte, len(ends))
	start := 0
	for n, end := range ends {
		parameters[n], start = buffer[start:end], end
	}
	return parameters
}

// insertRows runs the insert of rows and returns the new intents with their creation time. claim returns the rows; it is called
// when nothing but the statement is left to do, and nothing is written if it returns none. If a connection is lost before the
// statement was sent, another one is used. An OutcomeUnknownError means that the statement was sent and may have committed.
func insertRows(ctx context.Context, db *postgres.DB, claim func() []*TransferRow) (created map[uuid.UUID]time.Time, err error) {
	return onConnection(ctx, db, func(conn *pgx.Conn) (map[uuid.UUID]time.Time, error) { return insertOn(ctx, conn, claim) })
}

// onConnection runs an insert on a connection, and on another one if nothing could be sent on the first.
func onConnection(
	ctx context.Context, db *postgres.DB, insert func(*pgx.Conn) (map[uuid.UUID]time.Time, error),
) (created map[uuid.UUID]time.Time, err error) {
	once := func() (map[uuid.UUID]time.Time, error) {
		conn, err := db.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Release()
		return insert(conn.Conn())
	}
	const attempts = 3 // like database/sql
	for range attempts {
		created, err = once()
		if err == nil || ctx.Err() != nil || !pgconn.SafeToRetry(err) {
			return created, err
		}
	}
	return nil, fmt.Errorf("%w: %w", driver.ErrBadConn, err)
}

// insertOn runs the insert of rows on a connection, prepared if possible, or orSkip where two requests have the same idempotency key.
func insertOn(ctx context.Context, conn *pgx.Conn, claim func() []*TransferRow) (map[uuid.UUID]time.Time, error) {
	prepared, err := prepareInserts(ctx, conn)
	if err != nil {
		return nil, err
	}
	rows := claim()
	if len(rows) == 0 {
		return nil, nil //nolint:nilnil // no row is new
	}
	insert := insertOf(rows)
	parameters := encodeInsert(insert.columns, rows)
	run := func(statement string) (map[uuid.UUID]time.Time, error) {
		return scanInserted(conn.PgConn().ExecParams(ctx, statement, parameters, insert.types, allBinary, allBinary))
	}
	var created map[uuid.UUID]time.Time
	switch {
	case hasKeyTwice(rows):
		created, err = run(insert.orSkip)
	case prepared:
		created, err = scanInserted(conn.PgConn().ExecPrepared(ctx, insert.name, parameters, allBinary, allBinary))
		if forgetInserts(ctx, conn, err) {
			created, err = run(insert.statement)
		}
	default:
		created, err = run(insert.statement)
	}
	if postgres.SQLState(err) == uniqueViolation { // another request with the key was faster
		created, err = run(insert.orSkip)
	}
	return created, postgres.OutcomeOf(err)
}

// hasKeyTwice reports whether two neighbours have the same idempotency key. The rows are in the order of accounts and keys.
func hasKeyTwice(rows []*TransferRow) bool {
	for n, row := range rows[1:] {
		if before := rows[n]; row.IdempotencyKey != "" && row.IdempotencyKey == before.IdempotencyKey && row.AccountID == before.AccountID {
			return true
		}
	}
	return false
}

// preparedKey is the key under which a connection stores whether the inserts are prepared on it.
const preparedKey = "insert_transfers"

// prepareInserts prepares both inserts once on a direct connection to Postgres, and reports whether they are prepared. Behind a
// pooler the next statement may reach another server process, which does not know them.
func prepareInserts(ctx context.Context, conn *pgx.Conn) (bool, error) {
	state := conn.PgConn().CustomData()
	if prepared, known := state[preparedKey].(bool); known {
		return prepared, nil
	}
	direct, err := postgres.IsDirect(ctx, conn)
	if err != nil {
		return false, err
	}
	for _, insert := range []*transferInsert{insertPlain, insertLabelled} {
		if !direct {
			break
		}
		_, err := conn.PgConn().Prepare(ctx, insert.name, insert.statement, insert.types)
		if err != nil && postgres.SQLState(err) != duplicatePreparedStatement {
			return false, fmt.Errorf("prepare the insert of transfers: %w", err)
		}
		direct = err == nil
	}
	state[preparedKey] = direct
	return direct, nil
}

// SQLSTATEs of an insert that is to run again, and of a prepared statement that a connection cannot use.
const (
	// featureNotSupported is also the SQLSTATE of "cached plan must not change result type", after the type of a result column
	// has changed.
	featureNotSupported        = "0A000"
	invalidStatementName       = "26000"
	duplicatePreparedStatement = "42P05"
	uniqueViolation            = "23505"
)

// forgetInserts reports whether an error is of the prepared statement and not of the insert, which then has written nothing. After
// a schema change the statements are prepared again; a connection that has lost it goes through a pooler that looks like Postgres.
func forgetInserts(ctx context.Context, conn *pgx.Conn, err error) bool {
	switch postgres.SQLState(err) {
	case featureNotSupported:
		plain, labelled := conn.PgConn().Deallocate(ctx, insertPlain.name), conn.PgConn().Deallocate(ctx, insertLabelled.name)
		if plain == nil && labelled == nil {
			delete(conn.PgConn().CustomData(), preparedKey)
		}
		return true
	case invalidStatementName:
		conn.PgConn().CustomData()[preparedKey] = false
		return true
	}
	return false
}

var errInsertResult = errors.New("the result of an insert is not an id and a time")

// scanInserted reads the result of an insert.
func scanInserted(result *pgconn.ResultReader) (map[uuid.UUID]time.Time, error) {
	created := map[uuid.UUID]time.Time{}
	var scanErr error
	for result.NextRow() {
		values := result.Values()
		if len(values) != 2 || len(values[0]) != 16 || len(values[1]) != 8 {
			scanErr = errInsertResult
			continue
		}
		at, err := timestamp(values[1])
		scanErr = errors.Join(scanErr, err)
		created[uuid.UUID(values[0])] = at
	}
	if _, err := result.Close(); err != nil {
		return nil, err
	}
	return created, scanErr
}
