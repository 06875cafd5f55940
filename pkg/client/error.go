package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is a request that failed: the service's error, another server's, or a connection without a response.
type Error struct {
	// Status is the HTTP status, 0 where there was no response.
	Status int
	// Code tells errors apart, also by errors.Is. It is empty where the response has no error body, and where there is none.
	Code Code
	// Message says what is wrong and what to do next.
	Message string
	// RequestID names the request in the service's logs.
	RequestID string
	// RetryAfter is the time after which the service asks to try again, 0 where it does not.
	RetryAfter time.Duration
	// Details has more, in JSON whose shape depends on the code.
	Details json.RawMessage
	// Body is the whole error body in JSON: a few codes have members beside details.
	Body json.RawMessage

	cause error
	// retryAfter is set if the response has a Retry-After, final if a repeat would end alike.
	retryAfter, final bool
	// firstItem is the place in a list of the first item of the batch that was refused.
	firstItem int
}

func (e *Error) Error() string {
	var text strings.Builder
	if e.Status != 0 {
		fmt.Fprintf(&text, "%d ", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&text, "%s: ", e.Code)
	}
	text.WriteString(e.Message)
	var details struct {
		Issues []struct{ Path, Message string }
	}
	if json.Unmarshal(e.Details, &details) == nil && len(details.Issues) > 0 {
		first := details.Issues[0]
		fmt.Fprintf(&text, " First: %s.", strings.TrimSpace(first.Path+" "+first.Message))
	}
	if e.RequestID != "" {
		fmt.Fprintf(&text, " (request %s)", e.RequestID)
	}
	return text.String()
}

// Is tells whether the target is the error's code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code != "" && code == e.Code
}

// Unwrap returns why there is no response, nil where there is one.
func (e *Error) Unwrap() error { return e.cause }

// AddressPaths are the JSON Pointers to the addresses that the service does not serve, such as /destination/account, for
// CodeAddressNotAllowed; none for other codes.
func (e *Error) AddressPaths() []string {
	var details struct{ Paths []string }
	if e.Code != CodeAddressNotAllowed || json.Unmarshal(e.Details, &details) != nil {
		return nil
	}
	return details.Paths
}

// newError is the error of a response that is no success.
func newError(r request, response *http.Response, text []byte, now time.Time) *Error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	e.RetryAfter, e.retryAfter = parseRetryAfter(response.Header.Get("Retry-After"), now)
	var body struct {
		Code      Code            `json:"code"`
		Message   string          `json:"message"`
		Details   json.RawMessage `json:"details"`
		RequestID string          `json:"requestId"`
	}
	if json.Unmarshal(text, &body) != nil || body.Code == "" {
		e.Message = fmt.Sprintf("%s %s has a response without an error of this API: %s", r.method, r.path, http.StatusText(e.Status))
		return e
	}
	e.Code, e.Message, e.Details, e.Body = body.Code, body.Message, body.Details, text
	e.RequestID = cmp.Or(e.RequestID, body.RequestID)
	return e
}

const (
	// maxTries is the default of WithMaxTries.
	maxTries = 3
	// maxPause bounds what Retry-After asks for, firstBackoff is the most without it, before the second try.
	maxPause     = time.Minute
	firstBackoff = 500 * time.Millisecond
)

// passes tells whether the failure may pass by itself.
func (e *Error) passes() bool {
	switch e.Status {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !e.final
	default:
		return false
	}
}

// pause is the time between this try and the next: what Retry-After says, else a random share of a time that doubles (full jitter).
func (e *Error) pause(try int, random float64) time.Duration {
	if e.retryAfter {
		return min(e.RetryAfter, maxPause)
	}
	return time.Duration(random * float64(firstBackoff<<(try-1)))
}

// parseRetryAfter reads Retry-After, seconds or an HTTP date (RFC 9110, 10.2.3). What is neither counts as none.
func parseRetryAfter(text string, now time.Time) (after time.Duration, ok bool) {
	text = strings.TrimSpace(text)
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return max(at.Sub(now), 0), true
}
