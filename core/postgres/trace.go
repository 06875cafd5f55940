package postgres

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"

	"intents.internal/pkg/tracing"
)

// queryTracer shows statements in the trace of the request that makes them: what is done to which table, and never the SQL,
// into which bun writes the values.
type queryTracer struct{ database []tracing.Attribute }

func newQueryTracer(config *pgx.ConnConfig) queryTracer {
	server := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if strings.HasPrefix(config.Host, "/") { // a socket, which has no port
		server = config.Host
	}
	return queryTracer{append(tracing.Database("postgresql", config.Database), tracing.ServerAt(server)...)}
}

// spanKey is where an event keeps its span.
type spanKey struct{}

// BeforeQuery implements bun.QueryHook. The span is kept in the event and not in the context, since that of BEGIN becomes
// the whole transaction's.
func (t queryTracer) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	request := tracing.FromContext(ctx)
	if !request.Recording() {
		return ctx
	}
	if event.Stash == nil {
		event.Stash = map[any]any{}
	}
	event.Stash[spanKey{}] = t.start(request, operationOf(event), tableOf(event))
	return ctx
}

// AfterQuery implements bun.QueryHook.
func (t queryTracer) AfterQuery(_ context.Context, event *bun.QueryEvent) {
	if span, traced := event.Stash[spanKey{}].(tracing.Span); traced {
		endQuery(span, event.Err)
	}
}

func (t queryTracer) start(below tracing.Span, operation, table string) tracing.Span {
	return below.Start(queryName(operation, table), tracing.Client, slices.Concat(t.database, tracing.Query(operation, table))...)
}

func queryName(operation, table string) string { return strings.TrimSpace(operation + " " + table) }

// endQuery ends the span of a query or a commit.
func endQuery(span tracing.Span, err error) {
	if !span.Recording() {
		return
	}
	state := sqlState(err)
	switch {
	case err == nil, errors.Is(err, sql.ErrNoRows):
	case state != "":
		span.Set(tracing.ResponseCode(state))
		span.Fail(state)
	case errors.Is(err, context.Canceled):
		span.Fail("canceled")
	case errors.Is(err, context.DeadlineExceeded):
		span.Fail("timeout")
	case Unavailable(err):
		span.Fail("unavailable")
	default:
		span.Fail("failed")
	}
	span.End()
}

// operations are what a statement may be called.
var operations = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT"}

const otherOperation = "QUERY"

// operationOf is the statement's first word. bun knows it of the statements that it builds, and takes all others for SELECT.
func operationOf(event *bun.QueryEvent) string {
	word, _, _ := strings.Cut(strings.TrimLeft(event.Query, " \t\n"), " ")
	if _, raw := event.IQuery.(*bun.RawQuery); !raw && event.IQuery != nil {
		word = event.IQuery.Operation()
	}
	word = strings.ToUpper(word)
	if slices.Contains(operations, word) {
		return word
	}
	return otherOperation
}

// maxTableName bounds what is taken for a table's name.
const maxTableName = 40

// tableOf is the table that the statement is about in the first place, empty where that is not one name: bun may know an
// expression there, which could hold values.
func tableOf(event *bun.QueryEvent) string {
	if event.IQuery == nil {
		return ""
	}
	name := strings.Trim(event.IQuery.GetTableName(), `"`)
	if len(name) > maxTableName || strings.ContainsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }) {
		return ""
	}
	return name
}

// startCommit begins the span of a commit, which all who wait for its rows share.
func (w *transferWriter) startCommit(batch []*pendingInsert) tracing.Span {
	const operation, table = "INSERT", "transfers"
	commit := tracing.StartShared(len(batch), func(n int) tracing.Span { return batch[n].span }, queryName(operation, table), tracing.Client)
	if commit.Recording() {
		commit.Set(slices.Concat(w.tracer.database, tracing.Query(operation, table))...)
	}
	return commit
}
