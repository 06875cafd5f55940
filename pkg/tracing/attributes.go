package tracing

import (
	"net"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// What the conventions have no names for.
const (
	requestIDKey   = attribute.Key("intents.request_id")
	keyIDKey       = attribute.Key("intents.key_id")
	environmentKey = attribute.Key("intents.environment")
	outcomeKey     = attribute.Key("intents.outcome")
)

// What follows is all that spans tell: names of OpenTelemetry's semantic conventions where there are any, and values of
// closed sets or ids. There is no path, query, body, SQL, address of a client or key among them, so none can leak.

// RequestMethod is the method, which must be a known one; any other is _OTHER.
func RequestMethod(method string) Attribute { return semconv.HTTPRequestMethodKey.String(method) }

// Route is the template of the path that a service answered.
func Route(template string) Attribute { return semconv.HTTPRoute(template) }

// URLTemplate is the template of the path that another service was asked for.
func URLTemplate(template string) Attribute { return semconv.URLTemplate(template) }

// URLScheme is http or https.
func URLScheme(scheme string) Attribute { return semconv.URLScheme(scheme) }

// ResponseStatus is the status of an answer.
func ResponseStatus(status int) Attribute { return semconv.HTTPResponseStatusCode(status) }

// ResponseBodySize is how many bytes of an answer's body were passed on, as they went over the wire but without their framing.
func ResponseBodySize(bytes int64) Attribute { return semconv.HTTPResponseBodySizeKey.Int64(bytes) }

// ResendCount tells the attempts of one request apart; the first has none.
func ResendCount(attempt int) Attribute { return semconv.HTTPRequestResendCount(attempt) }

// ServerAt is where another service or a database is, host:port or the path of a socket.
func ServerAt(address string) []Attribute {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return []Attribute{semconv.ServerAddress(address)}
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return []Attribute{semconv.ServerAddress(host)}
	}
	return []Attribute{semconv.ServerAddress(host), semconv.ServerPort(number)}
}

// ErrorType is why an operation failed: a word of a closed set, an HTTP status or an SQLSTATE.
func ErrorType(kind string) Attribute { return semconv.ErrorTypeKey.String(kind) }

// Database is the system and the name of a database.
func Database(system, name string) []Attribute {
	about := []Attribute{semconv.DBSystemNameKey.String(system)}
	if name != "" {
		about = append(about, semconv.DBNamespace(name))
	}
	return about
}

// Query is what is done to which table, which may be empty, without any value.
func Query(operation, table string) []Attribute {
	about := []Attribute{semconv.DBOperationName(operation)}
	if table != "" {
		about = append(about, semconv.DBCollectionName(table), semconv.DBQuerySummary(operation+" "+table))
	}
	return about
}

// ResponseCode is the SQLSTATE of a failure.
func ResponseCode(state string) Attribute { return semconv.DBResponseStatusCode(state) }

// RequestID is the id that answers bear in X-Request-Id.
func RequestID(id string) Attribute { return requestIDKey.String(id) }

// KeyID is the id of an API key.
func KeyID(id string) Attribute { return keyIDKey.String(id) }

// Environment is the key's, test or live.
func Environment(of string) Attribute { return environmentKey.String(of) }

// Outcome is what became of a request, as the metrics call it.
func Outcome(o string) Attribute { return outcomeKey.String(o) }
