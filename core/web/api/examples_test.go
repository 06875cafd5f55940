package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestMain(m *testing.M) { pgtest.Main(twice{m}) }

// twice runs the tests, and then those of POST /v2/transfers again with each request in a batch.
type twice struct{ *testing.M }

func (m twice) Run() int {
	code := webtest.Main(m.M, func(path string) bool { return !strings.HasPrefix(path, "/auth/") })
	if code != 0 || webtest.InBatch || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.list").Value.String() != "" {
		return code
	}
	fmt.Println("the tests of POST /v2/transfers again, with each request in a batch")
	webtest.InBatch = true
	if err := flag.Set("test.run", "Transfer|Idempotency|Failure|Trace|Route"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.M.Run()
}

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
