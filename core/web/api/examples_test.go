package api_test

import (
	"encoding/json"
	"os"
	"testing"

	"intents.internal/core/web/webtest"
)

// Every documented operation that answers with a body has an example, so that a new one cannot be forgotten.
func TestExamples(t *testing.T) {
	t.Parallel()
	operations, err := webtest.DocumentedOperations()
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]any{}
	for _, file := range []string{"testdata/examples.json", "../auth/testdata/examples.json"} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &recorded)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	without := map[string]bool{ // no JSON body in their success
		"getHealth": true, "getHealthV2": true, "getDocs": true, "getOpenApi": true, "getOpenApiV2": true, "finishOpenIDConnect": true,
		"deleteWebhook": true, "retryDelivery": true, "replayWebhook": true,
	}
	for route, operation := range operations {
		id := operation.OperationID
		if (recorded[id] == nil) != without[id] {
			t.Errorf("%s, %s: has an example is %v", route, id, without[id])
		}
	}
}
