package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// fault is what an SQLSTATE says of a statement that failed. The zero value is the default of every SQLSTATE that sqlStates does not
// name: the database is unavailable for the statement, which may succeed later.
type fault struct {
	// defect: the statement or its values are wrong, so that it fails however often it is repeated.
	defect bool
	// ofRow: a value of a row is at fault, and the same statement without the row may succeed.
	ofRow bool
	// locked: other transactions were in the way, and the statements of one of them fail for no other.
	locked bool
	// reconnect: what is behind the connection cannot serve its next statement either, so the connection is closed.
	reconnect bool
	// unknownOutcome: a pooler or a server that lost the transaction reports it, which may have committed.
	unknownOutcome bool
}

// The SQLSTATEs that callers name.
const (
	// serializationFailure is also that of a statement that a standby cancels to continue replaying.
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	// lockNotAvailable is that of a lock that was not granted within lock_timeout.
	lockNotAvailable = "55P03"
	// readOnlyTransaction is that of a write on a standby, or where default_transaction_read_only is on.
	readOnlyTransaction = "25006"
)

// sqlStates are the faults of SQLSTATEs, and of classes of them, their first two characters. A state goes before its class. The classes are
// those of appendix A of Postgres's manual.
var sqlStates = map[string]fault{
	"03": {defect: true}, // SQL statement not yet complete
	"08": {reconnect: true, unknownOutcome: true},
	"09": {defect: true}, // triggered action exception
	"0A": {defect: true}, // feature not supported
	"0B": {defect: true}, // invalid transaction initiation
	"0F": {defect: true}, // locator exception
	"0Z": {defect: true}, // diagnostics exception
	"10": {defect: true}, // XQuery error
	"20": {defect: true}, // case not found
	"21": {defect: true}, // cardinality violation
	"22": {defect: true, ofRow: true},
	"23": {defect: true, ofRow: true}, // a constraint whose violation the caller does not expect
	"24": {defect: true},              // invalid cursor state
	"25": {defect: true},              // invalid transaction state
	// A standby, a primary that was demoted to one, or a managed server whose disk is full.
	readOnlyTransaction:  {reconnect: true},
	"25P03":              {reconnect: true}, // idle_in_transaction_session_timeout
	"25P04":              {reconnect: true}, // transaction_timeout
	"27":                 {defect: true},    // triggered data change violation
	"2D":                 {defect: true},    // invalid transaction termination
	"2F":                 {defect: true},    // SQL routine exception
	"34":                 {defect: true},    // invalid cursor name
	"3B":                 {defect: true},    // savepoint exception
	serializationFailure: {locked: true},
	"40003":              {unknownOutcome: true}, // statement completion unknown
	deadlockDetected:     {locked: true},
	"42":                 {defect: true}, // syntax error, or a name or type that does not exist
	// Core's role lacks a privilege, which the operator grants.
	"42501": {},
	// A pooler lends a connection on which another client has prepared the statement.
	"42P05":          {},
	"44":             {defect: true}, // WITH CHECK OPTION violation
	"54":             {defect: true}, // a statement over a limit of Postgres's
	lockNotAvailable: {locked: true},
	"57P01":          {reconnect: true}, // admin shutdown
	"57P02":          {reconnect: true}, // crash shutdown
	"57P03":          {reconnect: true}, // cannot connect now
	"58":             {reconnect: true}, // system error, such as of a disk
	"P0":             {defect: true},    // PL/pgSQL error
	"XX":             {reconnect: true}, // internal error
}

// faultOf classifies an SQLSTATE. Every decision by SQLSTATE asks it.
func faultOf(state string) fault {
	if f, named := sqlStates[state]; named || len(state) != 5 {
		return f
	}
	return sqlStates[state[:2]]
}

// keepConnection is a pgconn.PgErrorHandler that closes a connection whose next statement would fail as well. next is the driver's
// own, which closes it after a FATAL error.
func keepConnection(next pgconn.PgErrorHandler) pgconn.PgErrorHandler {
	return func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		return next(conn, err) && !faultOf(err.Code).reconnect
	}
}

// IsLocked reports whether other transactions were in the way: a lock that was not granted in time, or a deadlock.
func IsLocked(err error) bool { return faultOf(SQLState(err)).locked }

// IsRowFault reports whether an error is of the values of a row and not of the database.
func IsRowFault(err error) bool { return faultOf(SQLState(err)).ofRow }

// SQLState is the SQLSTATE of an error of Postgres, empty for any other error.
func SQLState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}
