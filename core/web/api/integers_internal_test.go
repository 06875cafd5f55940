package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity/account"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/registry"
	"intents.internal/core/webhooks"
)

// maxima are the bounds that the service itself holds the integers of responses to, by where the document has them.
var maxima = map[string]int64{
	"/components/headers/RetryAfter/schema":                     int64(account.MaxLimitPeriod / time.Second),
	"RateLimitedError/properties/details/properties/tryAgainIn": account.MaxLimitPeriod.Milliseconds(),
	"Confirmations/properties/need":                             registry.MaxConfirmations,
	"Quote/properties/estimatedSeconds":                         int64(provider.MaxDuration / time.Second),
	"Event/properties/sequence":                                 math.MaxInt32, // integer in Postgres
	"TransferEventBody/properties/sequence":                     math.MaxInt32,
	"Delivery/properties/attempts":                              int64(webhooks.MaxAttempts),
	"CreatedApiKey/properties/rateLimitMax":                     account.MaxLimitRequests,
	"CreatedApiKey/properties/rateLimitTimeWindow":              account.MaxLimitPeriod.Milliseconds(),
	"ApiKey/properties/rateLimitMax":                            account.MaxLimitRequests,
	"ApiKey/properties/rateLimitTimeWindow":                     account.MaxLimitPeriod.Milliseconds(),
	"ApiKeyList/properties/total":                               account.MaxKeys,
	"ApiKeyList/properties/limit":                               math.MaxInt32, // as the parameter
	"ApiKeyList/properties/offset":                              math.MaxInt32,
	"MemberList/properties/total":                               account.MaxMembers,
}

// unbounded are the integers that the domain does not bound below what a JSON number in JavaScript keeps.
var unbounded = map[string]string{
	"/parameters/1/schema":                                        "webhook-timestamp: seconds since 1970",
	"/components/headers/RetryAfterIfTemporary/schema":            "how long an outage lasts",
	"PayloadTooLargeError/properties/details/properties/maxBytes": "GATEWAY_MAX_BODY_BYTES",
	"UsageCounts/properties/accepted":                             "a sum of requests",
	"UsageCounts/properties/limited":                              "a sum of requests",
	"UsageCounts/properties/refused":                              "a sum of requests",
	"FailureReason/properties/blockNumber":                        "the height of a chain",
	"ObservedTransaction/properties/blockNumber":                  "the height of a chain",
	"Confirmations/properties/have":                               "the height of a chain",
	"OrderOutput/properties/chainId":                              "sixteen digits, see caip.ParseChainID",
	"Order/properties/originChainId":                              "sixteen digits",
	"Transaction/properties/chainId":                              "sixteen digits",
	"Relay/properties/tx/properties/chainId":                      "sixteen digits",
	"TypedData/properties/domain/properties/chainId":              "sixteen digits",
	"ChainNotAllowedError/properties/chainId":                     "sixteen digits",
}

// Every integer of the document has a maximum, that which the service keeps, or none because the domain has none.
func TestDocument_Integers(t *testing.T) {
	t.Parallel()
	var document map[string]any
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	var walk func(at string, value any)
	walk = func(at string, value any) {
		switch value := value.(type) {
		case []any:
			for i, member := range value {
				walk(fmt.Sprintf("%s/%d", at, i), member)
			}
		case map[string]any:
			if kind := fmt.Sprint(value["type"]); kind == "integer" || strings.HasPrefix(kind, "[integer") {
				name := strings.TrimPrefix(at, "/components/schemas/")
				if _, parameter, of := strings.Cut(at, "/parameters/"); of && strings.HasPrefix(at, "/webhooks/") {
					name = "/parameters/" + parameter
				}
				used[name] = true
				got, bounded := value["maximum"].(float64)
				want, known := maxima[name]
				switch reason := unbounded[name]; {
				case known && int64(got) != want:
					t.Errorf("%s has the maximum %v, want %d", at, value["maximum"], want)
				case !bounded && reason == "":
					t.Errorf("%s has no maximum: give it the service's own, or say why there is none", at)
				case bounded && reason != "":
					t.Errorf("%s has a maximum and is listed without: %s", at, reason)
				}
			}
			for key, member := range value {
				if key != "example" && key != "examples" {
					walk(at+"/"+key, member)
				}
			}
		}
	}
	walk("", document)
	for name := range maxima {
		if !used[name] {
			t.Errorf("the document has no integer %s", name)
		}
	}
	for name := range unbounded {
		if !used[name] {
			t.Errorf("the document has no integer %s", name)
		}
	}
}

// Generators of servers name the body of a shared response after its schema, so a union in one is a schema of its own.
func TestDocument_UnionsNamed(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Responses map[string]struct {
				Content map[string]struct{ Schema map[string]any }
			}
		}
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	for name, response := range document.Components.Responses {
		for kind, content := range response.Content {
			if content.Schema["oneOf"] != nil || content.Schema["anyOf"] != nil {
				t.Errorf("the union of %s in %s has no name of its own", name, kind)
			}
		}
	}
	if len(document.Components.Responses) < 20 {
		t.Errorf("only %d shared responses were found", len(document.Components.Responses))
	}
}
