package postgres

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/tracing"
)

// queryTracer records statements in the trace of the request: the operation and the table, and never the SQL, because bun writes
// the values into it.
type queryTracer struct{ database []attribute.KeyValue }

func newQueryTracer(config *pgx.ConnConfig) queryTracer {
	t := queryTracer{[]attribute.KeyValue{
		semconv.DBSystemNamePostgreSQL, semconv.DBNamespace(config.Database), semconv.ServerAddress(config.Host),
	}}
	if !strings.HasPrefix(config.Host, "/") { // the path of a socket
		t.database = append(t.database, semconv.ServerPort(int(config.Port)))
	}
	return t
}

// spanKey is where an event keeps its span.
type spanKey struct{}

// BeforeQuery implements bun.QueryHook. It stores the span in the event and not in the context, because the context of BEGIN
// becomes the whole transaction's.
func (t queryTracer) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	if request := trace.SpanFromContext(ctx); request.IsRecording() {
		operation, table := operationOf(event), tableOf(event)
		span := tracing.StartClient(request, queryName(operation, table), t.query(operation, table)...)
		event.Stash = map[any]any{spanKey{}: span}
	}
	return ctx
}

// AfterQuery implements bun.QueryHook.
func (queryTracer) AfterQuery(_ context.Context, event *bun.QueryEvent) {
	if span, traced := event.Stash[spanKey{}].(trace.Span); traced {
		EndQuery(span, event.Err)
	}
}

func queryName(operation, table string) string { return strings.TrimSpace(operation + " " + table) }

// query describes a query in its span. table is empty for none.
func (t queryTracer) query(operation, table string) []attribute.KeyValue {
	about := append(slices.Clone(t.database), semconv.DBOperationName(operation))
	if table != "" {
		about = append(about, semconv.DBCollectionName(table), semconv.DBQuerySummary(queryName(operation, table)))
	}
	return about
}

// EndQuery ends the span of a query.
func EndQuery(span trace.Span, err error) {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		tracing.End(span, nil, "")
		return
	}
	reason := "failed"
	switch state := SQLState(err); {
	case state != "":
		reason = state
		span.SetAttributes(semconv.DBResponseStatusCode(state))
	case Unavailable(err):
		reason = "unavailable"
	}
	tracing.End(span, err, reason)
}

// operations are the names of statements in spans. All others are QUERY.
var operations = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT"}

// operationOf is the statement's first word. bun's own operation is SELECT for every raw query.
func operationOf(event *bun.QueryEvent) string {
	word, _, _ := strings.Cut(strings.TrimLeft(event.Query, " \t\n"), " ")
	if word = strings.ToUpper(word); slices.Contains(operations, word) {
		return word
	}
	return "QUERY"
}

// tableName matches a single name. bun may have an expression instead, which could contain values.
var tableName = regexp.MustCompile(`^"?([a-z_]{1,40})"?$`)

// tableOf returns the main table of the statement, empty for none.
func tableOf(event *bun.QueryEvent) string {
	if event.IQuery == nil {
		return ""
	}
	if name := tableName.FindStringSubmatch(event.IQuery.GetTableName()); name != nil {
		return name[1]
	}
	return ""
}

// StartQuery starts the span of a statement that bun does not run, such as an insert that waits for the commit it shares with others.
func (d *DB) StartQuery(ctx context.Context, operation, table string) trace.Span {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return request
	}
	return tracing.StartClient(request, queryName(operation, table), d.tracer.query(operation, table)...)
}
