package edge_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

// rowKey is the key of the rows: one that passes, with a limit that none of them reaches.
const rowKey = "sk_test_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01"

// putRowKey makes the rows' key known to a core.
func putRowKey(core *coretest.Core) {
	core.Put(mustParse(rowKey), wire.VerifiedKey{
		KeyID: "key", AccountID: "account", LimitBucket: uuid.NewString(), Limit: wire.KeyLimit{Requests: 1_000_000, PeriodSeconds: 1},
	})
}

func mustParse(text string) apikey.Key {
	key, err := apikey.Parse(text)
	if err != nil {
		panic(err)
	}
	return key
}

const (
	withKey   = "x-api-key: " + rowKey + "\r\n"
	chunkedTE = "Transfer-Encoding: chunked\r\n"
)

func methodOf(sent string) string {
	method, _, _ := strings.Cut(strings.TrimLeft(sent, "\r\n"), " ")
	return method
}

// list is a GET that passes if the given header lines do.
func list(headers string) string { return line("GET /v2/tokens HTTP/1.1", headers) }

// line is a request with the given request line that passes if this and the given header lines do.
func line(text, headers string) string {
	return text + "\r\nHost: a\r\n" + withKey + headers + "\r\n"
}

// write is a POST whose body may be anything.
func write(headers, body string) string {
	return line("POST /v2/transfers/1/transaction HTTP/1.1", headers) + body
}

// amend is a PATCH whose body may be anything.
func amend(headers, body string) string {
	return line("PATCH /v2/webhooks/1 HTTP/1.1", headers) + body
}

// passed is core's own answer.
func passed() response {
	return unkept(response{Status: 200, Body: "[]", Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {"2"}}})
}

// unkept is an answer of a core that does not say whether it may be kept, with the field that the gateway adds.
func unkept(r response) response {
	r.Header.Set("Cache-Control", "no-store")
	return r
}

// last is the same answer, the last of its connection.
func last(r response) response {
	r.Header = r.Header.Clone()
	r.Header.Set("Connection", "close")
	return r
}

// tells is what core is told of a request with the rows' key: besides the request line, the given header lines and the body
// only what the gateway itself has to say.
func tells(requestLine, body string, headers ...string) string {
	return toldAs(requestLine, body, append(headers, "Host: core", "X-Account-Id: account", "X-Key-Env: test", "X-Key-Id: key"))
}

// tellsList and tellsWrite are that for list and write.
func tellsList() string { return tells("GET /v2/tokens", "") }

func tellsWrite(body string, headers ...string) string {
	return tells("POST /v2/transfers/1/transaction", body, headers...)
}

func toldAs(requestLine, body string, headers []string) string {
	headers = append(headers, "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Request-Id: new")
	if strings.HasPrefix(requestLine, "POST ") || strings.HasPrefix(requestLine, "PATCH ") {
		headers = append(headers, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	slices.Sort(headers)
	return requestLine + " HTTP/1.1\n" + strings.Join(headers, "\n") + "\n\n" + body + "\n"
}

var requestIDLine = regexp.MustCompile(`(?m)^X-Request-Id: [0-9a-f]{8}-[0-9a-f]{4}-7.*$`)

var hostLine = regexp.MustCompile(`(?m)^Host: 127\.0\.0\.1:\d+$`)

// canonicals are requests that core received, each with its header lines in order and with names for what differs each time.
func canonicals(raws []string) string {
	var all strings.Builder
	for _, raw := range raws {
		head, body, _ := strings.Cut(raw, "\r\n\r\n")
		lines := strings.Split(head, "\r\n")
		for i, line := range lines {
			lines[i] = hostLine.ReplaceAllString(requestIDLine.ReplaceAllString(line, "X-Request-Id: new"), "Host: core")
		}
		slices.Sort(lines[1:])
		all.WriteString(strings.Join(lines, "\n") + "\n\n" + body + "\n")
	}
	return all.String()
}

// unclear is a refusal after which nothing on the connection can be trusted.
func unclear(status int, code, message string) response {
	return refusal(status, fmt.Sprintf(`{"code":%q,"message":%q}`, code, message), "Connection", "close")
}

func bad(message string) response { return unclear(400, "INVALID_REQUEST", message) }

// notHTTP is the refusal of what fasthttp cannot read.
func notHTTP() response { return bad("The request is not valid HTTP/1.1.") }

func notFound(headers ...string) response {
	return refusal(404, `{"code":"NOT_FOUND","message":"There is nothing at this path."}`, headers...)
}

func noKey() response {
	return refusal(401, `{"code":"INVALID_API_KEY","message":"Send your API key in the x-api-key header."}`,
		"Www-Authenticate", `ApiKey header="x-api-key"`)
}

func badKey() response { return refusal(403, badKeyBody) }

func tooLong() response {
	return refusal(413, `{"code":"PAYLOAD_TOO_LARGE","message":"The body must not be longer than 65536 bytes.","details":{"maxBytes":65536}}`, "Connection", "close")
}

func headersTooLong() response {
	return unclear(431, "HEADERS_TOO_LARGE", "The request's headers are too long.")
}

// headOf is what a HEAD gets of an answer.
func headOf(r response) response {
	r.Body = ""
	return r
}

// alike makes a row of each of the inputs, all with the same outcome.
func alike(want response, told string, sent ...string) []row {
	rows := make([]row, 0, len(sent))
	for _, s := range sent {
		rows = append(rows, row{name: nameOf(s), sent: s, want: want, told: told})
	}
	return rows
}

// refused is alike for inputs that core is not told of, and passing for those that core answers.
func refused(want response, sent ...string) []row { return alike(want, "", sent...) }

func passing(told string, sent ...string) []row { return alike(passed(), told, sent...) }

// nameOf shows what is particular about a request.
func nameOf(sent string) string {
	bare := strings.NewReplacer("\r\nHost: a\r\n"+withKey, "\r\n", rowKey, "KEY").Replace(sent)
	quoted := strconv.Quote(bare)
	if len(quoted) > 100 {
		quoted = quoted[:60] + "…" + quoted[len(quoted)-30:]
	}
	return quoted[1 : len(quoted)-1]
}
