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
)

const (
	signingUser  = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	signingToken = "0x0Ae627987397e9aaADEeea8D9B57E01C48c504FE"
	typedData    = `{"types":{"EIP712Domain":[{"name":"name","type":"string"}],"Order":[{"name":"nonce","type":"uint256"}]},` +
		`"domain":{"name":"Permit2","chainId":31337,"verifyingContract":"0x000000000022D473030F116dDEE9F6B43aC78BA3"},` +
		`"primaryType":"Order","message":{"nonce":"1"}}`
	signingAllowance = `{"token":"eip155:31337:` + signingToken + `","owner":"` + signingUser + `","spender":"0x000000000022D473030F116dDEE9F6B43aC78BA3",` +
		`"amount":"5","approve":{"to":"` + signingToken + `","value":"0","data":"0xapprove"},"reset":{"to":"` + signingToken + `","value":"0","data":"0xreset"}}`
)

// An intent that is signed costs its user the approval at most: the account signs what the service gave, and the service gets the signature.
func TestSender_Sign(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, reference, allowance string
		granted                    int
		want                       []string
		next                       string
	}{
		{"no allowance is needed", "null", "null", 0, []string{"eth_signTypedData_v4", "0xsigned"}, "the solver sends the transaction"},
		{"granted before", "null", signingAllowance, 5, []string{"eth_call", "eth_signTypedData_v4", "0xsigned"}, "the solver sends the transaction"},
		{
			"granted now", `"relay-myself"`, signingAllowance, 4,
			[]string{
				"eth_call", "eth_sendTransaction 0xreset", "eth_getTransactionReceipt", "eth_sendTransaction 0xapprove", "eth_getTransactionReceipt",
				"eth_signTypedData_v4", "0xsigned",
			},
			"/v2/transfers/one/relay",
		},
	} {
		var did []string
		limited := false
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var call struct {
				Method string
				Params []json.RawMessage
			}
			_ = json.NewDecoder(r.Body).Decode(&call)
			answers := map[string]string{
				"eth_chainId": `"0x7a69"`, "eth_call": fmt.Sprintf(`"0x%064x"`, test.granted), "eth_sendTransaction": `"0xhash"`,
				"eth_getTransactionReceipt": `{"status":"0x1"}`, "eth_signTypedData_v4": `"0xsigned"`,
			}
			fmt.Fprintf(w, `{"result":%s}`, answers[call.Method])
			switch call.Method {
			case "eth_chainId":
				return
			case "eth_sendTransaction":
				var tx transaction
				_ = json.Unmarshal(call.Params[0], &tx)
				did = append(did, call.Method+" "+tx.Data)
				return
			case "eth_signTypedData_v4":
				if got := fmt.Sprintf("%s %s", call.Params[0], call.Params[1]); got != `"`+signingUser+`" `+typedData {
					t.Errorf("%s: the wallet was asked to sign %s", test.name, got)
				}
			}
			did = append(did, call.Method)
		}))
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/v2/transfers/one":
				fmt.Fprintf(w, `{"id":"one","type":"bridge","status":"created","reference":%s,"source":{"account":"eip155:31337:%s"},"tx":null,`+
					`"signing":{"scheme":"permit2","typedData":%s,"digest":"0xdigest","allowance":%s}}`, test.reference, signingUser, typedData, test.allowance)
			case "/v2/transfers/one/preflight":
				fmt.Fprint(w, `{"checks":[{"name":"balance","ok":true}]}`)
			case "/v2/transfers/one/signature":
				if !limited { // the first is over the limit of the key
					limited = true
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				var body struct{ Signature string }
				_ = json.NewDecoder(r.Body).Decode(&body)
				did = append(did, body.Signature)
				fmt.Fprint(w, `{"id":"one"}`)
			}
		}))
		var out strings.Builder
		s, err := newSender(map[string]string{"GATEWAY_URL": gateway.URL, "TEST_KEY": "sk_test_x", "CHAIN_31337_RPC_URL": node.URL}, &out)
		if err == nil {
			err = s.send(t.Context(), "one")
		}
		gateway.Close()
		node.Close()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, did); diff != "" || !strings.Contains(out.String(), test.next) {
			t.Errorf("%s: it says %s, and did (-want +got):\n%s", test.name, out.String(), diff)
		}
	}
}

// An intent whose time to sign is over is not signed.
func TestSender_SignLate(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"one","type":"bridge","status":"created","signing":{"scheme":"permit2","typedData":null}}`)
	}))
	defer gateway.Close()
	s, err := newSender(map[string]string{"GATEWAY_URL": gateway.URL, "TEST_KEY": "sk_test_x"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.send(t.Context(), "one"); err == nil || !strings.Contains(err.Error(), "before its deadline, is signed") {
		t.Error(err)
	}
}
