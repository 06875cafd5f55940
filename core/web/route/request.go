package route

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"intents.internal/pkg/wire"
)

// ReadBody reads a JSON body of at most wire.MaxTransferRequestBytes.
func ReadBody(r *http.Request) ([]byte, error) {
	return ReadBodyUpTo(r, wire.MaxTransferRequestBytes)
}

// ReadBodyUpTo reads a JSON body of at most limit bytes, or returns a 413 for a longer one.
func ReadBodyUpTo(r *http.Request, limit int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return nil, NewError(http.StatusBadRequest, wire.InvalidRequest, "The body did not arrive whole.")
	}
	if len(body) > limit {
		return nil, TooLarge(limit)
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, ErrMediaType
	}
	return body, nil
}

// Decode decodes a JSON body into a struct strictly. It rejects duplicate and unknown names, wrong types and trailing data.
func Decode[T any](r *http.Request) (value T, err error) {
	body, err := ReadBody(r)
	if err != nil {
		return value, err
	}
	return DecodeBody[T](body)
}

// DecodeBody is decode for a body in memory.
func DecodeBody[T any](body []byte) (value T, err error) {
	if jsontext.Value(body).Kind() != '{' {
		return value, Invalid(wire.Issue{Message: "must be an object"})
	}
	err = json.Unmarshal(body, &value, json.RejectUnknownMembers(true), memberReader)
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	var refused valueError
	switch {
	case err == nil:
		return value, nil
	case errors.As(err, &syntax):
		return value, Invalid(wire.Issue{Path: string(syntax.JSONPointer), Message: "is not valid JSON: " + syntax.Err.Error()})
	case errors.As(err, &semantic) && errors.As(err, &refused):
		return value, Invalid(wire.Issue{Path: string(semantic.JSONPointer), Message: refused.Error()})
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		return value, Invalid(wire.Issue{Path: string(semantic.JSONPointer), Message: "is not a known field"})
	case errors.As(err, &semantic) && semantic.JSONKind != 0:
		return value, Invalid(wire.Issue{
			Path: string(semantic.JSONPointer), Message: "must not be a JSON " + kindName(semantic.JSONKind),
		})
	default:
		return value, Invalid(wire.Issue{Message: "is not one JSON object"})
	}
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "object"
	case '[':
		return "array"
	default:
		return kind.String()
	}
}

// Query parses the query parameters. An unknown, repeated or malformed parameter is an issue, and so is NUL, which Postgres
// cannot store. An allowed name that ends in * allows all names that begin so.
func Query(r *http.Request, allowed ...string) (map[string]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, Invalid(wire.Issue{Path: "query", Message: "is not a well-formed query string"})
	}
	parameters := make(map[string]string, len(values))
	var issues []wire.Issue
	for name, given := range values {
		switch {
		case !slices.ContainsFunc(allowed, func(pattern string) bool { return isOf(pattern, name) }):
			issues = append(issues, wire.Issue{Path: name, Message: "is not a known parameter"})
		case len(given) > 1:
			issues = append(issues, wire.Issue{Path: name, Message: "is given twice"})
		case strings.IndexByte(given[0], 0) >= 0:
			issues = append(issues, wire.Issue{Path: name, Message: "must not hold a NUL character"})
		default:
			parameters[name] = given[0]
		}
	}
	if len(issues) > 0 {
		slices.SortFunc(issues, func(a, b wire.Issue) int { return strings.Compare(a.Path, b.Path) })
		return nil, Invalid(issues...)
	}
	return parameters, nil
}

// isOf reports whether a parameter has the name that a pattern of query allows.
func isOf(pattern, name string) bool {
	prefix, isFamily := strings.CutSuffix(pattern, "*")
	return name == pattern || isFamily && strings.HasPrefix(name, prefix)
}

// maxNumber is the largest number of a query parameter without a bound of its own.
const maxNumber = math.MaxInt32

// NumberParameter parses a query parameter that is a whole number up to maxNumber; fallback is the default.
func NumberParameter(parameters map[string]string, name string, fallback int) (int, []wire.Issue) {
	text, given := parameters[name]
	if !given {
		return fallback, nil
	}
	n, err := WholeNumber(text, 0, maxNumber)
	if err != nil {
		return 0, []wire.Issue{{Path: name, Message: err.Error()}}
	}
	return n, nil
}

// WholeNumber parses a number of a query without sign and leading zeros. Its error is the text for the client.
func WholeNumber(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || strconv.Itoa(n) != text {
		return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
	}
	return n, nil
}

// ParseUUID accepts only the canonical spelling.
func ParseUUID(s string) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 { // Parse accepts others too
		return uuid.Nil, false
	}
	return id, true
}
