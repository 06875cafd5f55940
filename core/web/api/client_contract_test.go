package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/web/webtest"
	"intents.internal/pkg/client"
)

// The tests of this file hold the client in Go to the OpenAPI document: operations, members, enums, codes and recorded bodies.

// clientMethods are the client's methods by operation. A list of one kind of record may have a second one that reads all pages.
var clientMethods = map[string]string{
	"listTokens": "Tokens.List", "listChains": "Chains.List", "getUsage": "Usage.Get",
	"createTransfer": "Transfers.Create", "listTransfers": "Transfers.List", "getTransfer": "Transfers.Get", "updateTransfer": "Transfers.Update", "cancelTransfer": "Transfers.Cancel",
	"simulateTransfer":  "Transfers.Simulate",
	"reportTransaction": "Transfers.Report", "preflightTransfer": "Transfers.Preflight", "getRefund": "Transfers.Refund",
	"signTransfer": "Transfers.SubmitSignature", "getRelay": "Transfers.Relay", "createClientToken": "Transfers.CreateClientToken",
	"getOrigins": "Origins.Get", "updateOrigins": "Origins.Update",
	"createBatch": "Batches.Create", "getBatch": "Batches.Get", "getBatchCalls": "Batches.Calls", "reportBatchTransaction": "Batches.Report",
	"listTransferEvents": "Transfers.Events",
	"createQuotes":       "Quotes.Create", "getQuote": "Quotes.Get", "listEvents": "Events.List", "getEvent": "Events.Get",
	"createWebhook": "Webhooks.Create", "listWebhooks": "Webhooks.List", "getWebhook": "Webhooks.Get", "updateWebhook": "Webhooks.Update",
	"deleteWebhook": "Webhooks.Delete", "rotateWebhookSecret": "Webhooks.RotateSecret", "testWebhook": "Webhooks.Test",
	"listDeliveries": "Webhooks.Deliveries", "getDelivery": "Webhooks.Delivery", "retryDelivery": "Webhooks.Retry", "replayWebhook": "Webhooks.Replay",
}

// withoutMethod are operations for load balancers and for tools.
var withoutMethod = map[string]bool{"getHealthV2": true, "getOpenApiV2": true}

// clientTypes are the client's types of the schemas. An Event has methods for its JSON, so recorded ones show its members.
var clientTypes = map[string]any{
	"Usage": client.UsageReport{}, "TokenDefinition": client.Token{}, "Chain": client.Chain{}, "Settlement": client.Settlement{},
	"Transfer": client.Transfer{}, "TransferSummary": client.TransferSummary{}, "TransferEvent": client.TransferEvent{},
	"CreateTransferInput": client.CreateTransfer{}, "CreateQuotedTransferInput": client.CreateTransfer{}, "ReportTransactionInput": client.ReportTransaction{}, "UpdateTransferInput": client.UpdateTransfer{}, "SimulateTransferInput": client.SimulateTransfer{},
	"CreateBatchInput": client.CreateBatch{}, "CreatedBatch": client.CreatedBatch{}, "CreatedBatchSummary": client.Batch{}, "Batch": client.Batch{},
	"BatchCalls": client.BatchCalls{}, "ReportBatchTransactionInput": client.ReportBatchTransaction{},
	"Preflight": client.Preflight{}, "Refund": client.Refund{}, "SignTransferInput": client.SubmitSignature{}, "Relay": client.Relay{},
	"CreateClientTokenInput": client.CreateClientToken{}, "ClientToken": client.ClientToken{},
	"Origins": client.OriginList{}, "UpdateOriginsInput": client.OriginList{},
	"CreateQuotesInput": client.CreateQuotes{}, "Quotes": client.QuoteList{},
	"Quote": client.Quote{}, "Event": client.Event{}, "EventPage": client.EventPage{}, "TransferEvents": client.TransferEvents{}, "WebhookDisabled": client.WebhookEvent{},
	"Webhook": client.Webhook{}, "CreateWebhookInput": client.CreateWebhook{}, "CreatedWebhook": client.CreatedWebhook{},
	"UpdateWebhookInput": client.UpdateWebhook{}, "RotateWebhookSecretInput": client.RotateWebhookSecret{}, "WebhookSecret": client.WebhookSecret{},
	"TestWebhookInput": client.TestWebhook{}, "TestedWebhook": client.TestedWebhook{}, "DeliveryPage": client.DeliveryPage{}, "DeliveryDetails": client.DeliveryDetails{}, "ReplayWebhookInput": client.ReplayWebhook{},
}

// clientSuperset are the types that stand for several schemas, so that they have members which one of these lacks.
var clientSuperset = map[string]bool{"CreateQuotedTransferInput": true, "CreatedBatchSummary": true}

// contract is the OpenAPI document and the client's constants.
type contract struct {
	t         *testing.T
	document  map[string]any
	constants map[string][]string // the values of string constants by type
	compared  map[string]bool
	enums     map[string]map[string]bool // the values of all enums that a type of the client stands for
}

func readContract(t *testing.T) *contract {
	t.Helper()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	c := &contract{t: t, constants: map[string][]string{}, compared: map[string]bool{}, enums: map[string]map[string]bool{}}
	if err := json.Unmarshal(text, &c.document); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../pkg/client/*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			if group, ok := declared.(*ast.GenDecl); ok && group.Tok == token.CONST {
				c.addConstants(group)
			}
		}
	}
	return c
}

func (c *contract) addConstants(group *ast.GenDecl) {
	for _, spec := range group.Specs {
		value := spec.(*ast.ValueSpec)
		typed, ok := value.Type.(*ast.Ident)
		if !ok {
			continue
		}
		text := value.Values[0].(*ast.BasicLit).Value
		c.constants[typed.Name] = append(c.constants[typed.Name], strings.Trim(text, `"`))
	}
}

// deref follows references.
func (c *contract) deref(schema any) map[string]any {
	object, _ := schema.(map[string]any)
	for object["$ref"] != nil {
		var target any = c.document
		for name := range strings.SplitSeq(strings.TrimPrefix(object["$ref"].(string), "#/"), "/") {
			target = target.(map[string]any)[name]
		}
		object = target.(map[string]any)
	}
	return object
}

// operations calls visit with each operation under /v2.
func (c *contract) operations(visit func(id string, operation map[string]any)) {
	for path, item := range c.document["paths"].(map[string]any) {
		if !strings.HasPrefix(path, "/v2/") {
			continue
		}
		for method, operation := range item.(map[string]any) {
			if method != "parameters" {
				operation := operation.(map[string]any)
				visit(operation["operationId"].(string), operation)
			}
		}
	}
}

func TestClientContract_Operations(t *testing.T) {
	t.Parallel()
	c := readContract(t)
	seen := map[string]bool{}
	api := reflect.TypeFor[client.Client]()
	c.operations(func(id string, _ map[string]any) {
		seen[id] = true
		if withoutMethod[id] {
			return
		}
		service, method, _ := strings.Cut(clientMethods[id], ".")
		field, ok := api.FieldByName(service)
		if !ok {
			t.Errorf("%s has no method", id)
			return
		}
		if _, ok := field.Type.MethodByName(method); !ok {
			t.Errorf("%s: there is no %s.%s", id, service, method)
		}
	})
	for id := range clientMethods {
		if !seen[id] {
			t.Errorf("%s is no operation", id)
		}
	}
}

func TestClientContract_Codes(t *testing.T) {
	t.Parallel()
	c := readContract(t)
	documented := map[string]bool{}
	c.operations(func(_ string, operation map[string]any) {
		for _, response := range operation["responses"].(map[string]any) {
			content, _ := c.deref(response)["content"].(map[string]any)
			for _, media := range content {
				c.codes(media.(map[string]any)["schema"], documented)
			}
		}
	})
	want, got := slices.Sorted(maps.Keys(documented)), slices.Sorted(slices.Values(c.constants["Code"]))
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 50 {
		t.Errorf("codes of responses and of the client (-want +got):\n%s", diff)
	}
}

// codes collects the codes that a response's schema names.
func (c *contract) codes(schema any, into map[string]bool) {
	object := c.deref(schema)
	for _, combination := range []string{"allOf", "oneOf", "anyOf"} {
		parts, _ := object[combination].([]any)
		for _, part := range parts {
			c.codes(part, into)
		}
	}
	properties, _ := object["properties"].(map[string]any)
	code, _ := properties["code"].(map[string]any)
	if code["$ref"] == "#/components/schemas/ErrorCode" {
		return // any code, which narrows nothing
	}
	for _, value := range values(c.deref(code)) {
		into[value] = true
	}
}

// values are the strings of an enum or a constant.
func values(schema map[string]any) (all []string) {
	if value, ok := schema["const"].(string); ok {
		return []string{value}
	}
	enum, _ := schema["enum"].([]any)
	for _, value := range enum {
		if text, ok := value.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

func TestClientContract_Schemas(t *testing.T) {
	t.Parallel()
	c := readContract(t)
	schemas := c.document["components"].(map[string]any)["schemas"].(map[string]any)
	for name, value := range clientTypes {
		if schemas[name] == nil {
			t.Errorf("%s is no schema", name)
			continue
		}
		c.compare(name, schemas[name], reflect.TypeOf(value), clientSuperset[name])
	}
	event := c.deref(schemas["Event"])["properties"].(map[string]any)
	c.compare("Event.type", event["type"], reflect.TypeFor[client.EventType](), false)
	c.enums["EventType"][string(client.WebhookTest)] = true // of the bodies that are posted
	for name, enum := range c.enums {
		if diff := cmp.Diff(slices.Sorted(maps.Keys(enum)), slices.Sorted(slices.Values(c.constants[name]))); diff != "" {
			t.Errorf("the values of %s in the schemas and in the client (-want +got):\n%s", name, diff)
		}
	}
	// Every schema that an operation under /v2 takes or answers with has been compared.
	c.operations(func(id string, operation map[string]any) {
		bodies := []any{operation["requestBody"]}
		for status, response := range operation["responses"].(map[string]any) {
			if status < "300" {
				bodies = append(bodies, response)
			}
		}
		for _, body := range bodies {
			for _, name := range c.references(body) {
				if clientTypes[name] == nil && !c.compared[name] {
					t.Errorf("%s: %s is not compared", id, name)
				}
			}
		}
	})
}

// references are the names of the schemas that a request or response is.
func (c *contract) references(body any) (names []string) {
	content, _ := c.deref(body)["content"].(map[string]any)
	for _, media := range content {
		text, _ := json.Marshal(media.(map[string]any)["schema"])
		for _, match := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names
}

// compare holds a Go type to a schema: the members of an object both ways, and the values of an enum.
func (c *contract) compare(at string, schema any, goType reflect.Type, superset bool) {
	for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice {
		goType = goType.Elem()
	}
	if strings.HasPrefix(goType.Name(), "Change[") {
		return // a member that may be null; its values are the type parameter's
	}
	object := c.merged(schema)
	if items := object["items"]; items != nil {
		c.compare(at, items, goType, superset)
		return
	}
	if enum := values(object); object["enum"] != nil {
		if c.enums[goType.Name()] == nil {
			c.enums[goType.Name()] = map[string]bool{}
		}
		for _, value := range enum {
			c.enums[goType.Name()][value] = true
		}
		return
	}
	properties, _ := object["properties"].(map[string]any)
	if properties == nil || goType == reflect.TypeFor[client.Event]() {
		return
	}
	c.compared[goType.Name()] = true
	members := jsonMembers(goType)
	for name, property := range properties {
		member, ok := members[name]
		if !ok {
			c.t.Errorf("%s: %s lacks %s", at, goType, name)
			continue
		}
		c.compare(at+"."+name, property, member, false)
	}
	for name := range members {
		if properties[name] == nil && !superset {
			c.t.Errorf("%s: %s has %s, which the schema lacks", at, goType, name)
		}
	}
}

// merged is a schema with what it is combined of; of a choice with null the other part.
func (c *contract) merged(schema any) map[string]any {
	object := c.deref(schema)
	var parts []any
	for _, combination := range []string{"allOf", "oneOf", "anyOf"} {
		more, _ := object[combination].([]any)
		parts = append(parts, more...)
	}
	if len(parts) == 0 {
		return object
	}
	all := maps.Clone(object)
	properties := map[string]any{}
	for _, part := range append(parts, map[string]any{"properties": object["properties"]}) {
		part := c.merged(part)
		for name, value := range part {
			if name != "properties" && name != "description" && name != "required" && value != "null" {
				all[name] = value
			}
		}
		members, _ := part["properties"].(map[string]any)
		maps.Copy(properties, members)
	}
	if len(properties) > 0 {
		all["properties"] = properties
	}
	return all
}

// jsonMembers are the types of a struct's members by their names in JSON, those of embedded structs included.
func jsonMembers(goType reflect.Type) map[string]reflect.Type {
	members := map[string]reflect.Type{}
	if goType.Kind() != reflect.Struct {
		return members
	}
	for field := range goType.Fields() {
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			maps.Copy(members, jsonMembers(embedded))
		case name != "-" && name != "":
			members[name] = field.Type
		}
	}
	return members
}

// Recorded bodies are read without a member too many, and written again as they were.
func TestClientContract_Examples(t *testing.T) {
	t.Parallel()
	var recorded webtest.Examples
	text, err := os.ReadFile(webtest.ExamplesFile)
	if err == nil {
		err = json.Unmarshal(text, &recorded)
	}
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for operation, kinds := range map[string][2]any{
		"listTokens": {nil, []client.Token{}}, "listChains": {nil, []client.Chain{}}, "getUsage": {nil, client.UsageReport{}},
		"createTransfer": {client.CreateTransfer{}, client.Transfer{}}, "getTransfer": {nil, client.Transfer{}}, "listTransfers": {nil, []client.TransferSummary{}},
		"reportTransaction": {client.ReportTransaction{}, client.Transfer{}}, "cancelTransfer": {nil, client.Transfer{}}, "simulateTransfer": {client.SimulateTransfer{}, client.Transfer{}}, "updateTransfer": {nil, client.Transfer{}},
		"preflightTransfer": {nil, client.Preflight{}}, "getRefund": {nil, client.Refund{}},
		"signTransfer": {client.SubmitSignature{}, client.Transfer{}}, "getRelay": {nil, client.Relay{}},
		"createClientToken": {client.CreateClientToken{}, client.ClientToken{}},
		"getOrigins":        {nil, client.OriginList{}}, "updateOrigins": {client.OriginList{}, client.OriginList{}},
		"createBatch": {client.CreateBatch{}, nil}, "getBatch": {nil, client.Batch{}}, "getBatchCalls": {nil, client.BatchCalls{}},
		"reportBatchTransaction": {client.ReportBatchTransaction{}, client.Batch{}},
		"createQuotes":           {client.CreateQuotes{}, client.QuoteList{}}, "getQuote": {nil, client.Quote{}}, "listEvents": {nil, client.EventPage{}}, "getEvent": {nil, client.Event{}},
		"createWebhook": {client.CreateWebhook{}, client.CreatedWebhook{}}, "listWebhooks": {nil, []client.Webhook{}}, "getWebhook": {nil, client.Webhook{}},
		"updateWebhook": {nil, client.Webhook{}}, "rotateWebhookSecret": {client.RotateWebhookSecret{}, client.WebhookSecret{}},
		"testWebhook": {client.TestWebhook{}, client.TestedWebhook{}}, "listDeliveries": {nil, client.DeliveryPage{}},
		"getDelivery": {nil, client.DeliveryDetails{}},
	} {
		for part, named := range recorded[operation] {
			kind := kinds[1]
			if part == "request" {
				kind = kinds[0]
			} else if part >= "300" {
				continue
			}
			for name, body := range named {
				if kind == nil {
					continue
				}
				if err := roundTrip(body, reflect.New(reflect.TypeOf(kind))); err != nil {
					t.Errorf("%s/%s/%s: %v", operation, part, name, err)
				}
				compared++
			}
		}
	}
	if compared < 40 {
		t.Errorf("%d bodies", compared)
	}
}

// trailingZeros are those of a time's fraction of a second, which Go does not write.
var trailingZeros = regexp.MustCompile(`(T\d\d:\d\d:\d\d)(?:\.0+Z|(\.\d*[1-9])0*Z)`)

// roundTrip reads a body into a new value and compares what that is written as.
func roundTrip(body []byte, into reflect.Value) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into.Interface()); err != nil {
		return err
	}
	written, err := json.Marshal(into.Interface())
	if err != nil {
		return err
	}
	var want, got any
	if err := json.Unmarshal(trailingZeros.ReplaceAll(body, []byte("$1${2}Z")), &want); err != nil {
		return err
	}
	if err := json.Unmarshal(written, &got); err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("(-recorded +written):\n%s", diff)
	}
	return nil
}
