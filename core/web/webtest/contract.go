package webtest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"intents.internal/core/web/openapitest"
)

// openAPIFile is beside this package, wherever the test runs.
var openAPIFile = func() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "../api/openapi.json")
}()

// Contract is what every response that the tests read is held to. The headers are those that gateways add to the responses of core.
var Contract = sync.OnceValues(func() (*openapitest.Contract, error) {
	return openapitest.Read(openAPIFile, "X-Request-Id", "RateLimit-Policy", "RateLimit")
})

// answered are the operations and statuses of the responses that were held to openapi.json.
var answered sync.Map

// mustConform fails the test for a response to a gateway that the document does not describe.
func mustConform(t *testing.T, response *http.Response, body string) {
	t.Helper()
	held, err := Contract()
	if err != nil {
		t.Fatal(err)
	}
	request := response.Request
	if request == nil || request.Header.Get("X-Gateway-Secret") != GatewaySecret || !held.Documents(request) {
		return
	}
	if keyed := strings.HasPrefix(request.URL.Path, "/v2/"); keyed && response.StatusCode == http.StatusUnauthorized {
		return // gateways name the account
	}
	sent := *response
	sent.Header = response.Header.Clone()
	sent.Header.Del("X-Poll-Wait") // gateways keep it
	if id := request.Header.Get("X-Request-Id"); response.StatusCode >= 400 && !strings.HasSuffix(body, `,"requestId":"`+id+`"}`) && request.Method != http.MethodHead {
		t.Errorf("%s %s answered %d without the request's id: %s", request.Method, request.URL.RequestURI(), response.StatusCode, body)
	}
	for _, fault := range held.Faults(request, &sent, []byte(body)) {
		t.Errorf("%s %s answered %d against openapi.json: %s", request.Method, request.URL.RequestURI(), response.StatusCode, fault)
	}
	if request.Method != http.MethodHead {
		answered.Store(OperationOf(t, request.Method, request.URL.Path)+" "+strconv.Itoa(response.StatusCode), true)
	}
}

// shared are statuses that routes have from what they share with the others, or from the gateway, and that are tested there.
var shared = []string{"default", "400", "401", "403", "413", "415", "429", "500", "503", "504"}

// AnsweredByGateway are operations that the gateway has by itself.
var AnsweredByGateway = []string{"getHealth", "getHealthV2", "getOpenApiV2"}

// unanswered are the documented operations and statuses of these paths that no response to a test had.
func unanswered(answers func(path string) bool) (missing []string, err error) {
	operations, err := DocumentedOperations()
	if err != nil {
		return nil, err
	}
	for route, operation := range operations {
		_, path, _ := strings.Cut(route, " ")
		if !answers(path) || slices.Contains(AnsweredByGateway, operation.OperationID) {
			continue
		}
		for status := range operation.Responses {
			if _, ok := answered.Load(operation.OperationID + " " + status); !ok && !slices.Contains(shared, status) {
				missing = append(missing, operation.OperationID+" "+status)
			}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// documentedOperation is an operation of openapi.json.
type documentedOperation struct {
	OperationID string
	Responses   map[string]any
}

// DocumentedOperations are the operations of openapi.json by method and path.
var DocumentedOperations = sync.OnceValues(func() (operations map[string]documentedOperation, err error) {
	var described struct {
		Paths map[string]map[string]json.RawMessage
	}
	text, err := os.ReadFile(openAPIFile)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &described); err != nil {
		return nil, err
	}
	operations = map[string]documentedOperation{}
	for path, item := range described.Paths {
		for method, raw := range item {
			var operation documentedOperation
			if json.Unmarshal(raw, &operation) == nil && operation.OperationID != "" {
				operations[strings.ToUpper(method)+" "+path] = operation
			}
		}
	}
	return operations, nil
})

// OperationOf is the operationId of a request.
func OperationOf(t *testing.T, method, path string) string {
	t.Helper()
	operations, err := DocumentedOperations()
	if err != nil {
		t.Fatal(err)
	}
	path, _, _ = strings.Cut(path, "?")
	for pattern, operation := range operations {
		if slices.EqualFunc(strings.Split(pattern, "/"), strings.Split(method+" "+path, "/"), func(want, got string) bool {
			return want == got || strings.HasPrefix(want, "{") && got != ""
		}) {
			return operation.OperationID
		}
	}
	t.Fatalf("%s %s is not documented", method, path)
	return ""
}
