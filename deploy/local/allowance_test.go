package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/client"
)

// What is sent for a transaction depends on the allowance that the token has.
func TestNode_Steps(t *testing.T) {
	t.Parallel()
	const owner, spender, token = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x048e6f1D1922cE4A0d528cfdC9D945Cfb1DA4000", "0x7688CF3f08d8bd601797a7776eCA1dd71A0bB581"
	needing := client.Transaction{Allowances: []client.Allowance{{
		Token: "eip155:31337:" + token, Owner: owner, Spender: spender, Amount: "1000", Reset: client.Approval{To: token, Value: "0", Data: "0xreset"},
		Approve: client.Approval{To: token, Value: "0", Data: "0xapprove"},
	}}}
	needing.Calls.Calls = []client.Call{{To: token, Value: "0x0", Data: "0xapprove"}, {To: spender, Value: "0x0", Data: "0xopen"}}
	plain := client.Transaction{}
	plain.Calls.Calls = needing.Calls.Calls[1:]
	for _, test := range []struct {
		tx      client.Transaction
		granted int
		want    []string
	}{
		{needing, 0, []string{"approved 0xapprove", "sent 0xopen"}},
		{needing, 999, []string{"reset 0xreset", "approved 0xapprove", "sent 0xopen"}},
		{needing, 1000, []string{"sent 0xopen"}},
		{plain, 0, []string{"sent 0xopen"}},
	} {
		var asked string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = string(body)
			_ = json.NewEncoder(w).Encode(map[string]any{"result": fmt.Sprintf("0x%064x", test.granted)})
		}))
		steps, err := node{server.URL, server.Client()}.steps(t.Context(), &test.tx)
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range steps {
			if s.Value != "0x0" {
				t.Errorf("%s has the value %s", s.done, s.Value)
			}
			got = append(got, s.done+" "+s.Data)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("with an allowance of %d (-want +got):\n%s", test.granted, diff)
		}
		call := fmt.Sprintf(`[{"data":"0xdd62ed3e%024d%s%024d%s","to":%q},"latest"]`, 0, owner[2:], 0, spender[2:], token)
		if len(test.tx.Allowances) > 0 && !strings.Contains(asked, call) {
			t.Errorf("the token was asked %s, want %s", asked, call)
		}
	}
}
