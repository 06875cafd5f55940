package wire_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

const (
	quoteID = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	source  = `{"account":"` + usdc + `","token":"` + usdc + `","amount":"1"}`

	bob   = "eip155:84532:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	usdc  = "eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	whole = `{
	  "source": {"account": "eip155:11155111:0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
	             "token": "eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", "amount": "1000000"},
	  "destination": {"account": "eip155:84532:0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
	                  "token": "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e", "amount": "995000"},
	  "deadline": "2027-01-01T01:00:00+01:00", "reference": "inv-42"}`
)

var notAQuoteID = wire.Issue{
	Path: "/quoteId", Message: "must be the id of a quote: a UUID in lower case, such as 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b",
}

func account(t *testing.T, text string) caip.AccountID {
	t.Helper()
	id, err := caip.ParseAccountID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestDecodeTransferRequest(t *testing.T) {
	t.Parallel()
	got, issues := wire.DecodeTransferRequest([]byte(whole))
	want := wire.TransferRequest{
		Source: wire.Leg{
			Account: account(t, "eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
			Token:   account(t, usdc), Amount: "1000000",
		},
		Destination: wire.Leg{
			Account: account(t, bob), Token: account(t, "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e"), Amount: "995000",
		},
		Deadline: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Reference: "inv-42",
	}
	if diff := cmp.Diff(want, got); diff != "" || issues != nil {
		t.Errorf("issues %v; request (-want +got):\n%s", issues, diff)
	}
	wantChains := []caip.ChainID{caip.EIP155Chain(11155111), caip.EIP155Chain(84532)}
	if diff := cmp.Diff(wantChains, got.Chains()); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
}

// Each body is wrong in the ways that its issues say, and in no other.
func TestDecodeTransferRequest_Issues(t *testing.T) {
	t.Parallel()
	type issues = []wire.Issue
	with := func(old, replacement string) string { return strings.Replace(whole, old, replacement, 1) }
	labelled := func(labels string) string { return with(`"inv-42"`, `"inv-42", "labels": `+labels) }
	for name, c := range map[string]struct {
		body string
		want issues
	}{
		"empty":            {``, issues{{"", "is not one valid JSON object: it ends too early"}}},
		"cut":              {`{"source":`, issues{{"/source", "is not one valid JSON object: it ends too early"}}},
		"array":            {`[]`, issues{{"", "must be an object"}}},
		"null":             {`null`, issues{{"", "must be an object"}}},
		"nothing in it":    {`{}`, issues{{"/source", "is required"}, {"/destination", "is required"}}},
		"second value":     {whole + `{}`, issues{{"", "is not one valid JSON object: a second JSON value follows the first"}}},
		"trailing garbage": {`{} x`, issues{{"", "is not valid JSON at byte 3: invalid character 'x' at start of value"}}},
		"name twice":       {with(`"amount": "1000000"`, `"amount": "1", "amount": "2"`), issues{{"/source/amount", "is given twice"}}},
		"name twice, escaped": {
			with(`"amount": "1000000"`, `"amount": "1", "\u0061mount": "2"`), issues{{"/source/amount", "is given twice"}},
		},
		"unknown top":  {with(`"reference"`, `"Reference"`), issues{{"/Reference", "is not a known field"}}},
		"unknown deep": {with(`"amount": "1000000"`, `"amount": "1", "memo": {"a": [1, {}]}`), issues{{"/source/memo", "is not a known field"}}},
		"name twice in an unknown field": {
			with(`"reference": "inv-42"`, `"x": {"a": 1, "a": 2}`), issues{{"/x/a", "is given twice"}},
		},
		"number amount":         {with(`"1000000"`, `1000000`), issues{{"/source/amount", "must be a string"}}},
		"null deadline":         {with(`"2027-01-01T01:00:00+01:00"`, `null`), issues{{"/deadline", "must be a string"}}},
		"array leg":             {with(`"deadline"`, `"source": [], "deadline"`), issues{{"/source", "is given twice"}}},
		"invalid UTF-8":         {with(`inv-42`, "\xff"), issues{{"/reference", "is not valid JSON at byte 451: invalid UTF-8"}}},
		"NUL":                   {with(`inv-42`, `a\u0000`), issues{{"/reference", "must not hold a NUL character"}}},
		"empty text":            {with(`inv-42`, ``), issues{{"/reference", "must have 1 to 128 characters"}}},
		"long text":             {with(`inv-42`, strings.Repeat("ü", 129)), issues{{"/reference", "must have 1 to 128 characters"}}},
		"date only":             {with(`2027-01-01T01:00:00+01:00`, `2027-01-01`), issues{{"/deadline", "must be an RFC 3339 time such as 2027-01-01T00:00:00Z"}}},
		"wrong checksum":        {with(`0x1c7D`, `0x1C7D`), issues{{"/source/token", "the address has a wrong EIP-55 checksum; copy it again or write it all in lower case"}}},
		"quote and source":      {`{"quoteId":"` + quoteID + `","source":` + source + `}`, issues{{"/destination", "is required"}}},
		"quote and destination": {`{"destination":{"account":"` + bob + `"},"quoteId":"` + quoteID + `"}`, issues{{"/source", "is required"}}},
		"number quote":          {`{"quoteId":7}`, issues{{"/quoteId", "must be a string"}}},
		"upper-case quote":      {`{"quoteId":"` + strings.ToUpper(quoteID) + `"}`, issues{notAQuoteID}},
		"quote in braces":       {`{"quoteId":"{` + quoteID + `}"}`, issues{notAQuoteID}},
		"quote without hyphens": {`{"quoteId":"` + strings.ReplaceAll(quoteID, "-", "") + `"}`, issues{notAQuoteID}},
		"empty quote":           {`{"quoteId":""}`, issues{notAQuoteID}},
		"submit alone":          {with(`"reference"`, `"submit": true, "reference"`), issues{{"/submit", "needs signing: an order is submitted with its user's signature"}}},
		"submit as false":       {with(`"reference"`, `"signing": "permit2", "submit": false, "reference"`), issues{{"/submit", "must be true, or left out"}}},
		"submit as a string":    {with(`"reference"`, `"signing": "permit2", "submit": "true", "reference"`), issues{{"/submit", "must be true, or left out"}}},
		"other signing":         {with(`"reference"`, `"signing": "eip2612", "reference"`), issues{{"/signing", "must be permit2 or erc3009"}}},
		"empty signing":         {with(`"reference"`, `"signing": "", "reference"`), issues{{"/signing", "must be permit2 or erc3009"}}},
		"signing as a boolean":  {with(`"reference"`, `"signing": true, "reference"`), issues{{"/signing", "must be a string"}}},
		"labels as an array":    {labelled(`[]`), issues{{"/labels", "must be an object"}}},
		"labels as null":        {labelled(`null`), issues{{"/labels", "must be an object"}}},
		"label key":             {labelled(`{"a b":"1","":"2","ä":{}}`), issues{{"/labels/a b", wire.LabelKeyRule}, {"/labels/", wire.LabelKeyRule}, {"/labels/ä", wire.LabelKeyRule}}},
		"long label key":        {labelled(`{"` + strings.Repeat("k", 41) + `":"1"}`), issues{{"/labels/" + strings.Repeat("k", 41), wire.LabelKeyRule}}},
		"label twice":           {labelled(`{"a":"1","\u0061":"1"}`), issues{{"/labels/a", "is given twice"}}},
		"label as a number":     {labelled(`{"a":1,"b":null}`), issues{{"/labels/a", "must be a string"}, {"/labels/b", "must be a string"}}},
		"empty label":           {labelled(`{"a":""}`), issues{{"/labels/a", wire.LabelValueRule}}},
		"long label":            {labelled(`{"a":"` + strings.Repeat("ü", 201) + `"}`), issues{{"/labels/a", wire.LabelValueRule}}},
		"label of two lines":    {labelled(`{"a":"1\n2"}`), issues{{"/labels/a", wire.LabelValueRule}}},
		"NUL in a label":        {labelled(`{"a":"\u0000"}`), issues{{"/labels/a", "must not hold a NUL character"}}},
		"21 labels":             {labelled(labels(21)), issues{{"/labels", "must not have more than 20 labels"}}},
		"cut labels":            {strings.TrimSuffix(labelled(`{"a":`), `}`), issues{{"/labels/a", "is not one valid JSON object: it ends too early"}}},
		"several": {
			`{"source":{"account":"x","amount":"-1"},"destination":{}}`,
			issues{
				{"/source/account", "must be a CAIP-10 account id such as eip155:1:0x0000000000000000000000000000000000000001"},
				{"/source/amount", "must be a whole number of the token's smallest unit in decimal digits, without sign or leading zeros"},
				{"/source/token", "is required"},
				{"/destination/account", "is required"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got := wire.DecodeTransferRequest([]byte(c.body))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("issues (-want +got):\n%s", diff)
			}
		})
	}
}

// A request with a quote has the whole body or neither side, and any may be signed.
func TestDecodeTransferRequest_Quote(t *testing.T) {
	t.Parallel()
	unquoted, _ := wire.DecodeTransferRequest([]byte(whole))
	quoted := unquoted
	quoted.QuoteID = quoteID
	signed := unquoted
	signed.Signing = wire.Permit2
	for body, want := range map[string]wire.TransferRequest{
		`{"quoteId":"` + quoteID + `"}`: {QuoteID: quoteID},
		`{"quoteId":"` + quoteID + `","reference":"inv-42","deadline":"2027-01-01T00:00:00Z"}`: {
			QuoteID: quoteID, Reference: unquoted.Reference, Deadline: unquoted.Deadline,
		},
		`{"quoteId":"` + quoteID + `",` + whole[1:]:                       quoted,
		`{"quoteId":"` + quoteID + `","signing":"erc3009"}`:               {QuoteID: quoteID, Signing: wire.ERC3009},
		`{"submit":true,"quoteId":"` + quoteID + `","signing":"erc3009"}`: {QuoteID: quoteID, Signing: wire.ERC3009, Submit: true},
		`{"signing":"permit2",` + whole[1:]:                               signed,
	} {
		got, issues := wire.DecodeTransferRequest([]byte(body))
		if diff := cmp.Diff(want, got); diff != "" || issues != nil {
			t.Errorf("%s: issues %v; request (-want +got):\n%s", body, issues, diff)
		}
	}
}

func TestDecodeTransferRequest_Amount(t *testing.T) {
	t.Parallel()
	for amount, ok := range map[string]bool{
		"0": true, "1": true, "115792089237316195423570985008687907853269984665640564039457584007913129639935": true,
		"": false, "00": false, "01": false, "-1": false, "+1": false, "1.0": false, "1e3": false, "0x1": false, " 1": false, "١": false,
	} {
		quoted, _ := json.Marshal(amount)
		_, issues := wire.DecodeTransferRequest([]byte(strings.Replace(whole, `"1000000"`, string(quoted), 1)))
		if (issues == nil) != ok {
			t.Errorf("amount %q: issues %v, want ok = %t", amount, issues, ok)
		}
	}
}

const minimal = `{"source":` + source + `,"destination":{"account":"` + bob + `"}}`

// seeds are valid bodies in several spellings, and bodies with issues.
var seeds = []string{
	whole, minimal, strings.ToLower(minimal), " \t\r\n" + minimal + "\n",
	strings.ReplaceAll(minimal, "eip155:84532:0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "hedera:mainnet:0.0.1234567890-zbhlt"),
	`{"destination":{"account":"` + bob + `"},"reference":"` + strings.Repeat("~", wire.MaxReferenceLength) + `",` + minimal[1:strings.Index(minimal, `,"destination"`)] + `}`,
	strings.Replace(whole, "inv-42", "réf", 1), strings.Replace(whole, "inv-42", `\u0041`, 1), strings.Replace(whole, "source", `\u0073ource`, 1),
	strings.Replace(whole, "inv-42", "", 1), strings.Replace(whole, "inv-42", strings.Repeat("x", wire.MaxReferenceLength+1), 1),
	strings.Replace(whole, "inv-42", "\x00", 1), strings.Replace(whole, "inv-42", `\u0000`, 1), strings.Replace(whole, "inv-42", "\xff", 1),
	strings.Replace(whole, `"inv-42"`, `42`, 1), strings.Replace(whole, `"inv-42"`, `null`, 1), strings.Replace(whole, "reference", "deadline", 1),
	strings.Replace(whole, "0x7099", "0X7099", 1), strings.Replace(whole, "0x70997970C", "0x70997970c", 1), strings.Replace(whole, "1000000", "01", 1),
	strings.Replace(whole, `"account"`, `"Account"`, 1), strings.Replace(whole, "T01:00", "t01:00", 1), strings.Replace(whole, "reference", "other", 1),
	whole + whole, whole + ",", whole[:len(whole)-1], whole[:len(whole)-1] + ",}", "[" + whole + "]", `{}`, ``, `{`, `{"source":{},"destination":{}}`,
	"\ufeff" + minimal, minimal + "\x00",
	`{"quoteId":"` + quoteID + `"}`, `{"quoteId":"` + quoteID + `",` + whole[1:], `{"quoteId":"` + quoteID + `","source":` + source + `}`,
	`{"quoteId":"` + quoteID + `","quoteId":"` + quoteID + `"}`, `{"quoteId":"` + quoteID + `","reference":"inv-42"}`,
	`{"signing":"permit2",` + whole[1:], `{"signing":"permit3","quoteId":"` + quoteID + `"}`,
	`{"labels":{"b":"\u0032","a.B-c_1":"<ü>"},` + whole[1:], `{"labels":{},` + whole[1:], `{"labels":{"":"1","b":null},` + whole[1:],
	`{"source":{"account":"a","account":"b"}}`, `{"a":[{"b":null}],"\u0061":1}`,
}

// Whatever the decoder takes, a plain decoder reads alike, and it is valid UTF-8 in one JSON object.
func FuzzDecodeTransferRequest(f *testing.F) {
	for _, body := range seeds {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		request, issues := wire.DecodeTransferRequest(body)
		if issues != nil {
			return
		}
		type leg struct{ Account, Token, Amount string }
		var plain struct {
			Source, Destination                   leg
			Deadline, Reference, QuoteID, Signing string
			Labels                                map[string]string
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&plain); err != nil || !utf8.Valid(body) {
			t.Fatalf("took %q, which encoding/json refuses: %v", body, err)
		}
		if read := request.Labels.Pairs(); len(read) > wire.MaxLabels || !maps.Equal(read, plain.Labels) {
			t.Fatalf("read the labels of %q as %q", body, request.Labels)
		}
		for _, pair := range [][2]string{
			{request.Source.Account.String(), plain.Source.Account},
			{request.Source.Token.String(), plain.Source.Token},
			{request.Destination.Account.String(), plain.Destination.Account},
			{request.Destination.Token.String(), plain.Destination.Token},
		} {
			if !strings.EqualFold(pair[0], pair[1]) {
				t.Fatalf("read %q as %q", pair[1], pair[0])
			}
		}
		if request.Source.Amount != plain.Source.Amount || request.Reference != plain.Reference || request.QuoteID != plain.QuoteID || string(request.Signing) != plain.Signing {
			t.Fatalf("read %+v as %+v", plain, request)
		}
	})
}

// Documents share what they are read with; what one held must not show in another.
func TestDecodeTransferRequest_Concurrent(t *testing.T) {
	t.Parallel()
	const broken = `{"source":{"account":"eip155:1:0x`
	want, issues := wire.DecodeTransferRequest([]byte(whole))
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 500 {
				body := whole
				if n%2 == 0 {
					body = broken
				}
				got, issues := wire.DecodeTransferRequest([]byte(body))
				if (len(issues) > 0) != (n%2 == 0) || n%2 > 0 && got != want {
					t.Errorf("%s: %+v, %v", body, got, issues)
					return
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkDecodeTransferRequest(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, issues := wire.DecodeTransferRequest([]byte(whole)); len(issues) > 0 {
			b.Fatal(issues)
		}
	}
}
