package api_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"intents.internal/core/web/openapitest"
)

// openAPI is what every response that the tests read is held to. The headers are those that gateways add to the responses of core.
var openAPI = sync.OnceValues(func() (*openapitest.Contract, error) {
	return openapitest.Read("openapi.json", "X-Request-Id", "RateLimit-Policy", "RateLimit")
})

// answered are the operations and statuses of the responses that were held to openapi.json.
var answered sync.Map

// mustConform fails the test for a response to a gateway that the document does not describe.
func mustConform(t *testing.T, response *http.Response, body string) {
	t.Helper()
	held, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	request := response.Request
	if request == nil || request.Header.Get("X-Gateway-Secret") != gatewaySecret || !held.Documents(request) {
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
		answered.Store(operationOf(t, request.Method, request.URL.Path)+" "+strconv.Itoa(response.StatusCode), true)
	}
}

// shared are statuses that routes have from what they share with the others, or from the gateway, and that are tested there.
var shared = []string{"default", "400", "401", "403", "413", "415", "429", "500", "503", "504"}

// answeredByGateway are operations that the gateway has by itself.
var answeredByGateway = []string{"getHealth", "getHealthV2", "getOpenApiV2"}

// unanswered are the documented operations and statuses that no response to a test had.
func unanswered() (missing []string, err error) {
	operations, err := documentedOperations()
	if err != nil {
		return nil, err
	}
	for _, operation := range operations {
		if slices.Contains(answeredByGateway, operation.OperationID) {
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
