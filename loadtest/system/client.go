package system

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

// Client sends requests to one address, each once.
type Client struct {
	// Base is the address, Key the X-Api-Key of every request; empty for none.
	Base, Key string
	HTTP      *http.Client
	t         *testing.T
}

// direct uses no proxy that the environment names. It keeps connections for less time than a gateway keeps them.
var direct = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}, Timeout: time.Minute}

// NewClient is a client whose requests take a minute at most. They end with the test.
func NewClient(t *testing.T, base, key string) *Client {
	t.Helper()
	return &Client{Base: base, Key: key, HTTP: direct, t: t}
}

// Answer is a response read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request that must be answered. The body is a text as it is, or anything else as JSON, or nil for none. headers are names and
// values in turn.
func (c *Client) Do(method, path string, body any, headers ...string) Answer {
	c.t.Helper()
	a, err := c.Try(method, path, body, headers...)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// Try is Do for goroutines and for requests that may fail.
func (c *Client) Try(method, path string, body any, headers ...string) (Answer, error) {
	var sent io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		sent = bytes.NewReader([]byte(b))
	case []byte:
		sent = bytes.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			return Answer{}, err
		}
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.Base+path, sent)
	if err != nil {
		return Answer{}, err
	}
	if c.Key != "" {
		request.Header.Set("X-Api-Key", c.Key)
	}
	if sent != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: read}, err
}

// Expect fails the test unless the answer has this status, and decodes its body.
func Expect[T any](t *testing.T, a Answer, status int) (value T) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	if err := json.Unmarshal(a.Body, &value); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	return value
}

// Get reads a page that must be answered with 200, such as one of an operations listener.
func Get(t *testing.T, url string) string {
	t.Helper()
	a := NewClient(t, url, "").Do(http.MethodGet, "", nil)
	if a.Status != http.StatusOK {
		t.Errorf("%s: %d", url, a.Status)
	}
	return string(a.Body)
}
