package webtest

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/pkg/wire"
)

// InBatch makes the tests send each POST /v2/transfers in a batch.
var InBatch bool

func init() { flag.BoolVar(&InBatch, "batch", false, "send each POST /v2/transfers in a batch") }

// SendGroup sends requests as one, as a gateway does, and returns their responses in the order of the requests.
func (s *Service) SendGroup(t *testing.T, requests ...*http.Request) []*http.Response {
	t.Helper()
	stream := s.PostGroup(t, GroupOf(t, requests...))
	defer stream.Body.Close()
	responses := make([]*http.Response, len(requests))
	for range requests {
		number, response := ReadFrame(t, stream.Body, len(requests)) //nolint:bodyclose // it is in memory
		if responses[number] != nil {
			t.Fatalf("request %d has two responses", number)
		}
		response.Request = requests[number]
		if response.Header.Values("Cache-Control") == nil {
			response.Header.Set("Cache-Control", "no-store") // as gateways do, see route.ForbidCaching
		}
		responses[number] = response
	}
	if rest, err := io.ReadAll(stream.Body); err != nil || len(rest) > 0 {
		t.Fatalf("after the last response: %q, %v", rest, err)
	}
	return responses
}

// GroupOf is the body of a batch.
func GroupOf(t *testing.T, requests ...*http.Request) (batch []byte) {
	t.Helper()
	for number, request := range requests {
		batch = wire.AppendFrame(batch, number, MessageOf(t, request))
	}
	return batch
}

// MessageOf is the message of a request in a batch.
func MessageOf(t *testing.T, request *http.Request) []byte {
	t.Helper()
	message := wire.AppendField(wire.AppendField(nil, wire.FieldMethod, request.Method), wire.FieldPath, request.URL.RequestURI())
	for name, values := range request.Header {
		for _, value := range values {
			if name != http.CanonicalHeaderKey(wire.HeaderGatewaySecret) {
				message = wire.AppendField(message, name, value)
			}
		}
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendBody(message, body)
}

// PostGroup sends the body of a batch.
func (s *Service) PostGroup(t *testing.T, body []byte) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+wire.PathBatch, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(wire.HeaderGatewaySecret, GatewaySecret)
	request.Header.Set(wire.HeaderBatch, wire.BatchVersion)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// ReadFrame reads the next response of a batch of count requests, and its number.
func ReadFrame(t *testing.T, from io.Reader, count int) (number int, response *http.Response) {
	t.Helper()
	head := make([]byte, wire.FrameHeadBytes)
	if _, err := io.ReadFull(from, head); err != nil {
		t.Fatalf("read a frame: %v", err)
	}
	number, length, err := wire.ParseFrameHead(head, count, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(from, message); err != nil {
		t.Fatalf("read a frame: %v", err)
	}
	response = &http.Response{Header: http.Header{}}
	for {
		name, value, rest, err := wire.NextField(message)
		if err != nil {
			t.Fatalf("%v: %q", err, message)
		}
		message = rest
		switch string(name) {
		case "":
			response.Body = io.NopCloser(bytes.NewReader(message))
			return number, response
		case wire.FieldStatus:
			if response.StatusCode, err = strconv.Atoi(string(value)); err != nil {
				t.Fatal(err)
			}
		default:
			response.Header.Add(string(name), string(value))
		}
	}
}

// CreateRequest is a request to create an intent as a gateway would send it for this account.
func (s *Service) CreateRequest(t *testing.T, account uuid.UUID, id, body string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v2/transfers", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for header := range slices.Chunk(append(Keyed(account, "test"), "Content-Type", "application/json", wire.HeaderRequestID, id), 2) {
		request.Header.Set(header[0], header[1])
	}
	return request
}
