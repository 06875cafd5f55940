package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

const (
	quoteSource = `{"account":"eip155:11155111:0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","token":"` + usdc + `"}`
	quoteWhole  = `{"source":{"account":"eip155:11155111:0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","token":"` + usdc + `","amount":"1000000"},
		"destination":{"account":"` + bob + `","token":"eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e"},
		"deadline":"2027-01-01T01:00:00+01:00","providers":["lifi","local-2"]}`
)

func TestDecodeQuoteRequest(t *testing.T) {
	t.Parallel()
	got, issues := wire.DecodeQuoteRequest([]byte(quoteWhole))
	want := wire.QuoteRequest{
		Source: wire.Leg{
			Account: account(t, "eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"), Token: account(t, usdc), Amount: "1000000",
		},
		Destination: wire.Leg{Account: account(t, bob), Token: account(t, "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e")},
		Deadline:    time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Providers: []string{"lifi", "local-2"},
	}
	if diff := cmp.Diff(want, got); diff != "" || issues != nil {
		t.Errorf("issues %v; request (-want +got):\n%s", issues, diff)
	}
	wantChains := []caip.ChainID{caip.EIP155Chain(11155111), caip.EIP155Chain(84532)}
	if diff := cmp.Diff(wantChains, got.Chains()); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
}

func TestDecodeQuoteRequest_Issues(t *testing.T) {
	t.Parallel()
	type issues = []wire.Issue
	providers := func(list string) string {
		return `{"source":` + quoteSource + `,"destination":{"account":"` + bob + `"},"providers":` + list + `}`
	}
	names := func(count int) string {
		list := make([]string, count)
		for n := range list {
			list[n] = fmt.Sprintf("%q", fmt.Sprint("p", n))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	badName, badCount := "must have 1 to 32 lower-case letters, digits and hyphens", issues{{"/providers", "must have 1 to 16 names"}}
	for name, c := range map[string]struct {
		body string
		want issues
	}{
		"nothing in it":     {`{}`, issues{{"/source", "is required"}, {"/destination", "is required"}}},
		"neither side":      {`{"source":{},"destination":{}}`, issues{{"/source/account", "is required"}, {"/source/token", "is required"}, {"/destination/account", "is required"}}},
		"number amount":     {strings.Replace(quoteWhole, `"1000000"`, `1000000`, 1), issues{{"/source/amount", "must be a string"}}},
		"unknown field":     {strings.Replace(quoteWhole, `providers`, `reference`, 1), issues{{"/reference", "is not a known field"}}},
		"cut in a list":     {`{"providers":["a"`, issues{{"/providers", "is not one valid JSON object: it ends too early"}}},
		"neither amount":    {providers(`["a"]`), nil},
		"most providers":    {providers(names(16)), nil},
		"longest provider":  {providers(`["` + strings.Repeat("a", 32) + `"]`), nil},
		"no providers":      {providers(`[]`), badCount},
		"many providers":    {providers(names(17)), badCount},
		"many other values": {providers(`["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p",{"q":[]},null]`), badCount},
		"providers no list": {providers(`"lifi"`), issues{{"/providers", "must be an array"}}},
		"provider twice":    {providers(`["a","b","a"]`), issues{{"/providers/2", "is given twice"}}},
		"bad names": {providers(`[1,"","Lifi","` + strings.Repeat("a", 33) + `","a\n"]`), issues{
			{"/providers/0", "must be a string"}, {"/providers/1", badName}, {"/providers/2", badName}, {"/providers/3", badName}, {"/providers/4", badName},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got := wire.DecodeQuoteRequest([]byte(c.body))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("issues (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuoteRequest_CheckAmounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source, destination string
		want                wire.Code
	}{
		{"1", "", ""},
		{"", "1", ""},
		{"", "", "AMOUNT_REQUIRED"},
		{"1", "1", "AMOUNTS_CONFLICT"},
	} {
		r := wire.QuoteRequest{Source: wire.Leg{Amount: c.source}, Destination: wire.Leg{Amount: c.destination}}
		if got, ok := r.CheckAmounts(); got.Code != c.want || ok != (c.want == "") {
			t.Errorf("amounts %q and %q: %+v, ok = %t; want the code %q", c.source, c.destination, got, ok, c.want)
		}
	}
}

// Whatever the decoder takes has the same values for a plain decoder, and written again it is read alike.
func FuzzDecodeQuoteRequest(f *testing.F) {
	for _, body := range []string{quoteWhole, `{"providers":["a","a"],"source":{"amount":"1"}}`, `{"providers":[[],{"a":1}]}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		request, issues := wire.DecodeQuoteRequest(body)
		if issues != nil {
			return
		}
		type leg struct {
			Account string `json:"account"`
			Token   string `json:"token,omitempty"`
			Amount  string `json:"amount,omitempty"`
		}
		var plain struct {
			Source      leg      `json:"source"`
			Destination leg      `json:"destination"`
			Deadline    string   `json:"deadline,omitempty"`
			Providers   []string `json:"providers,omitempty"`
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&plain); err != nil {
			t.Fatalf("took %q, which encoding/json refuses: %v", body, err)
		}
		for _, pair := range [][2]string{{request.Source.Amount, plain.Source.Amount}, {request.Destination.Amount, plain.Destination.Amount}} {
			if pair[0] != pair[1] {
				t.Errorf("%q: read the amount %q as %q", body, pair[1], pair[0])
			}
		}
		again, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		reread, issues := wire.DecodeQuoteRequest(again)
		if diff := cmp.Diff(request, reread); diff != "" || issues != nil {
			t.Errorf("%s: issues %v; request (-first +second):\n%s", again, issues, diff)
		}
	})
}
