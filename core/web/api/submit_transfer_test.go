package api_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/metricstest"
)

// signable is Sepolia where every check of the preflight of a signed intent is good.
func signable() *rpctest.Chain {
	chain := payable()
	chain.MineEmpty(1)
	chain.SetFunction(common.HexToAddress(transfer.Permit2Address), rpctest.NewSelector("nonceBitmap(address,uint256)"), returning(0))
	chain.SetFunction(usdc, rpctest.NewSelector("nonces(address)"), returning(0))
	chain.SetFunction(usdc, rpctest.NewSelector("authorizationState(address,bytes32)"), returning(0))
	chain.SetFunction(usdc, rpctest.Selector{0x88, 0xb7, 0xab, 0x63}, returning(0))
	chain.SetFunction(sepoliaSettler, openFor, returning(0))
	return chain
}

var (
	openFor = rpctest.Selector{0x49, 0x92, 0x70, 0x74}
	// validatorCode are the first bytes of the code by which accounts with code are asked about a signature.
	validatorCode = rpctest.Selector{0x60, 0x80, 0x60, 0x40}
)

// solverKey is in the headers of requests to the solver.
const solverKey = "of-the-header"

// submitting is a service with a solver that takes orders.
type submitting struct {
	*service
	url    string
	change []func(*webtest.Settings)
	config *webtest.Settings
	solver *providertest.Solver
	chain  *rpctest.Chain

	mu sync.Mutex
	// posted are the orders that the solver was sent, and asked the ids that it was asked about.
	posted []string
	asked  []string
	// status and body are its next answer, where <id> stands for the id of the order.
	status   int
	body, id string
}

func startSubmitting(t *testing.T) *submitting {
	t.Helper()
	return startSubmittingTo(t, providertest.Start(t, "solver", network.Test))
}

func startSubmittingTo(t *testing.T, solver *providertest.Solver) *submitting {
	t.Helper()
	s := &submitting{url: pgtest.Database(t), solver: solver, chain: signable()}
	s.solver.Endpoint.Orders, s.solver.Endpoint.Headers = true, map[string]telemetry.Secret{"X-Key": solverKey}
	s.solver.SetOrders(s.serveOrders)
	s.change = []func(*webtest.Settings){quoting(t, s.solver), func(c *webtest.Settings) {
		c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(s.chain))
		s.config = c
	}}
	s.service = startOn(t, pgtest.Open(t, s.url), s.change...)
	s.answer(200, `{"orderId":"<id>","status":"received","message":"queued"}`)
	return s
}

func (s *submitting) serveOrders(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		s.asked = append(s.asked, r.URL.Path)
	} else {
		s.posted = append(s.posted, string(body))
	}
	if s.status >= 300 && s.status < 400 {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, strings.ReplaceAll(s.body, "<id>", s.id))
}

// answer sets what the solver answers from now on.
func (s *submitting) answer(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body = status, body
}

// sent are the orders that the solver was sent since the last call.
func (s *submitting) sent() (posted []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	posted, s.posted = s.posted, nil
	return posted
}

// make makes an intent of a quote, to be submitted, and signs it.
func (s *submitting) make(t *testing.T, user signer, scheme string, account []string) (location string, record map[string]any, signature string) {
	t.Helper()
	response := webtest.ReadAll(t, s.Send(t, "POST", "/v2/quotes", strings.ReplaceAll(exactInput, webtest.Alice, user.address), account...))
	var got struct{ Quotes []struct{ ID string } }
	if err := json.Unmarshal([]byte(response), &got); err != nil || len(got.Quotes) != 1 {
		t.Fatalf("%s %v", response, err)
	}
	status, location, text := s.CreateTransfer(t, of(got.Quotes[0].ID, `,"signing":"`+scheme+`","submit":true`), account...)
	if status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	record = exact(t, text)
	s.id = record["orderId"].(string)[2:]
	return location, record, signatureOf(user.sign(t, s.signing(t, location, account...).Signing.TypedData))
}

// exact is JSON with its numbers as they are written.
func exact(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

// submitted is signing.submitted of an intent, with its time as <time>.
func (s *submitting) submitted(t *testing.T, location string, account []string) any {
	t.Helper()
	signing := s.Call(t, "GET", location, "", account...).Body.(map[string]any)["signing"].(map[string]any)
	return signing["submitted"]
}

func submission(status string, detail any) map[string]any {
	return map[string]any{"provider": "solver", "status": status, "at": "<time>", "detail": detail}
}

// A signed order reaches its solver in the form that the framework's takes, by both schemes.
func TestSignTransfer_Submitted(t *testing.T) {
	t.Parallel()
	s := startSubmitting(t)
	key, err := crypto.ToECDSA(bytes.Repeat([]byte{8}, 32)) // the same in each run, for the examples
	if err != nil {
		t.Fatal(err)
	}
	account, user := webtest.Keyed(uuid.New(), "test"), signer{key, crypto.PubkeyToAddress(key.PublicKey).Hex()}
	for _, scheme := range []string{"permit2", "erc3009"} {
		location, record, signature := s.make(t, user, scheme, account)
		order, signing := record["order"].(map[string]any), record["signing"].(map[string]any)
		id, nonce := uuid.MustParse(record["id"].(string)), order["nonce"].(string)
		if want := new(big.Int).SetUint64(binary.BigEndian.Uint64(id[8:]) & (1<<62 - 1)); nonce != want.String() || signing["submitted"] != nil {
			t.Errorf("%s: nonce %s, want %s; submitted %v", scheme, nonce, want, signing["submitted"])
		}
		created, deadline := parsed(t, record["createdAt"]), parsed(t, record["deadline"])
		if lifetime := deadline.Sub(created); lifetime > 30*time.Minute || lifetime < 29*time.Minute {
			t.Errorf("%s: a deadline %s ahead", scheme, lifetime)
		}
		signed := s.Example(t, "an order that is submitted, "+scheme, "POST", location+"/signature", signature, account...)
		if signed.Status != 200 {
			t.Fatalf("%s: %+v", scheme, signed)
		}
		if diff := cmp.Diff(any(submission("received", "queued")), s.submitted(t, location, account)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", scheme, diff)
		}
		posted := s.sent()
		if len(posted) != 1 {
			t.Fatalf("%s: %d orders were sent", scheme, len(posted))
		}
		if diff := cmp.Diff(wantPosted(scheme, order, signing, signature), exact(t, posted[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", scheme, diff)
		}
		if relay := s.Call(t, "GET", location+"/relay", "", account...); relay.Status != 200 {
			t.Errorf("%s: relay %+v", scheme, relay)
		}
	}
}

// counted are the orders that were handed to the solver, by their statuses.
func (s *submitting) counted(t *testing.T) map[string]float64 {
	t.Helper()
	counts := map[string]float64{}
	for labels, n := range metricstest.Of(t, s.config.API.Metrics, "intents_core_order_submissions_total") {
		if status, ours := strings.CutPrefix(labels, "test solver "); ours && n > 0 {
			counts[status] = n
		}
	}
	return counts
}

func parsed(t *testing.T, text any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text.(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// wantPosted is the body of a signed order, made of an intent's record: see SignedOrder.
func wantPosted(scheme string, order, signing map[string]any, signature string) map[string]any {
	number := func(text any) json.Number { return json.Number(text.(string)) }
	typed := signing["typedData"].(map[string]any)
	message, output := typed["message"].(map[string]any), order["outputs"].([]any)[0].(map[string]any)
	payload := map[string]any{"signatureType": "eip712", "domain": typed["domain"], "primaryType": typed["primaryType"], "message": message}
	posted := map[string]any{"type": "oif-escrow-v0", "payload": payload}
	typeByte := "00"
	if scheme == "permit2" {
		witness := message["witness"].(map[string]any)["outputs"].([]any)[0].(map[string]any)
		witness["chainId"] = number(witness["chainId"])
	} else {
		typeByte, posted["type"] = "01", "oif-3009-v0"
		message["validAfter"], message["validBefore"] = number(message["validAfter"]), number(message["validBefore"])
		plain := func(word any) string { return common.HexToAddress(word.(string)).Hex() }
		input := order["inputs"].([]any)[0].(map[string]any)
		posted["metadata"] = map[string]any{
			"user": providertest.Interoperable(11155111, order["user"].(string)), "nonce": number(order["nonce"]), "expires": order["expires"],
			"fillDeadline": order["fillDeadline"], "inputOracle": order["inputOracle"],
			"inputs": []any{map[string]any{
				"chainId": json.Number("11155111"), "asset": providertest.Interoperable(11155111, input["token"].(string)), "amount": input["amount"],
			}},
			"outputs": []any{map[string]any{
				"chainId": json.Number("84532"), "asset": "0x0001000003014a34" + "14" + strings.ToLower(plain(output["token"])[2:]), "amount": output["amount"],
				"receiver": "0x0001000003014a34" + "14" + strings.ToLower(plain(output["recipient"])[2:]), "oracle": plain(output["oracle"]), "settler": plain(output["settler"]),
			}},
		}
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(signature, `{"signature":"0x`), `"}`)
	return map[string]any{"order": posted, "signature": "0x" + typeByte + bare}
}

// Every answer of a solver has its status, and no answer tells the signature or what the solver is sent beside it.
func TestSignTransfer_SubmissionAnswers(t *testing.T) {
	t.Parallel()
	s := startSubmitting(t)
	account, user := webtest.Keyed(uuid.New(), "test"), newSigner(t)
	long := strings.Repeat("ab", 65)
	other := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		status int
		body   string
		want   map[string]any
	}{
		"received, with 0x":        {202, `{"orderId":"0x<id>","status":"received"}`, submission("received", nil)},
		"rejected":                 {400, `{"orderId":null,"status":"rejected","message":"Nonce is known"}`, submission("rejected", "Nonce is known")},
		"an error":                 {503, `{"status":"error","message":"Not configured"}`, submission("error", "Not configured")},
		"an echo":                  {400, `{"status":"rejected","message":"of 0x` + long + ` by ` + solverKey + `\n!"}`, submission("rejected", "of 0x… by … !")},
		"another order":            {200, `{"orderId":"` + other + `","status":"received"}`, submission("PROVIDER_INVALID", nil)},
		"another order, rejected":  {200, `{"orderId":"` + other + `","status":"rejected"}`, submission("PROVIDER_INVALID", nil)},
		"no order":                 {200, `{"status":"received"}`, submission("PROVIDER_INVALID", nil)},
		"another word":             {200, `{"orderId":"<id>","status":"queued"}`, submission("PROVIDER_INVALID", nil)},
		"no JSON":                  {200, `<html>`, submission("PROVIDER_INVALID", nil)},
		"a redirect":               {307, ``, submission("PROVIDER_INVALID", nil)},
		"another refusal":          {400, `{"error":"ORDER_VALIDATION_FAILED","message":"no"}`, submission("PROVIDER_REFUSED", nil)},
		"too many":                 {429, ``, submission("PROVIDER_RATE_LIMITED", nil)},
		"a failure":                {500, `{"error":"INTERNAL_ERROR"}`, submission("PROVIDER_UNAVAILABLE", nil)},
		"received, with a failure": {500, `{"orderId":"<id>","status":"received"}`, submission("PROVIDER_UNAVAILABLE", nil)},
	} {
		location, _, signature := s.make(t, user, "permit2", account)
		s.answer(c.status, c.body)
		for range 2 { // the second signature sends nothing
			if signed := s.Call(t, "POST", location+"/signature", signature, account...); signed.Status != 200 {
				t.Fatalf("%s: %+v", name, signed)
			}
		}
		if diff := cmp.Diff(any(c.want), s.submitted(t, location, account)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if posted := s.sent(); len(posted) != 1 {
			t.Errorf("%s: %d orders were sent", name, len(posted))
		}
		bare := strings.TrimSuffix(strings.TrimPrefix(signature, `{"signature":"0x`), `"}`)
		if log := s.Log.String(); strings.Contains(log, bare) || strings.Contains(log, solverKey) {
			t.Errorf("%s: the log tells a secret", name)
		}
	}
	want := map[string]float64{
		"received": 1, "rejected": 2, "error": 1, "PROVIDER_INVALID": 6, "PROVIDER_REFUSED": 1, "PROVIDER_RATE_LIMITED": 1, "PROVIDER_UNAVAILABLE": 2,
	}
	if diff := cmp.Diff(want, s.counted(t)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// An answer that does not come is a status too, and the order is not sent again.
func TestSignTransfer_SubmissionUnanswered(t *testing.T) {
	t.Parallel()
	silent := providertest.Start(t, "solver", network.Test)
	silent.Endpoint.Timeout = time.Second
	s := startSubmittingTo(t, silent)
	account, user := webtest.Keyed(uuid.New(), "test"), newSigner(t)
	location, _, signature := s.make(t, user, "erc3009", account)
	sent := make(chan struct{}, 2)
	s.solver.SetOrders(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // with which the server sees the client leave
		sent <- struct{}{}
		<-r.Context().Done()
	})
	for range 2 {
		if signed := s.Call(t, "POST", location+"/signature", signature, account...); signed.Status != 200 {
			t.Fatalf("%+v", signed)
		}
	}
	if diff := cmp.Diff(any(submission("PROVIDER_TIMEOUT", nil)), s.submitted(t, location, account)); diff != "" || len(sent) != 1 {
		t.Errorf("%d sent (-want +got):\n%s", len(sent), diff)
	}
}

// Nothing is sent unless every check of the preflight is good and a key has signed; the same signature is then tried again.
func TestSignTransfer_NotSubmitted(t *testing.T) {
	t.Parallel()
	s := startSubmitting(t)
	account, user := webtest.Keyed(uuid.New(), "test"), newSigner(t)
	location, _, signature := s.make(t, user, "permit2", account)
	post := func(name string, want int) {
		t.Helper()
		if signed := s.Call(t, "POST", location+"/signature", signature, account...); signed.Status != 200 {
			t.Fatalf("%s: %+v", name, signed)
		}
		if posted := s.sent(); len(posted) != want || (want == 0) != (s.submitted(t, location, account) == nil) {
			t.Errorf("%s: %d orders were sent", name, len(posted))
		}
	}
	s.chain.SetFunction(usdc, rpctest.Allowance, returning(4))
	post("an allowance that is too low", 0)
	s.chain.SetFunction(usdc, rpctest.Allowance, returning(5))
	s.chain.SetFunction(sepoliaSettler, openFor, reverting(0x75, 0x66, 0x88, 0xfe))
	post("a transaction that reverts", 0)
	s.chain.SetFunction(sepoliaSettler, openFor, returning(0))
	s.chain.SetCode(common.HexToAddress(user.address), []byte{1})
	accepted := append([]byte{0x16, 0x26, 0xba, 0x7e}, make([]byte, 28)...)
	s.chain.SetFunction(common.Address{}, validatorCode, func(rpctest.Call) ([]byte, error) { return accepted, nil })
	post("an account with code", 0)
	s.chain.SetCode(common.HexToAddress(user.address), nil)
	post("every check is good", 1)
	s.Call(t, "POST", location+"/signature", signature, account...)
	if posted := s.sent(); len(posted) != 0 {
		t.Errorf("once more: %d orders were sent", len(posted))
	}
}

// However many signatures arrive at two cores at once, the order is sent once.
func TestSignTransfer_SubmittedOnce(t *testing.T) {
	t.Parallel()
	s := startSubmitting(t)
	cores := []*service{s.service, startOn(t, pgtest.Open(t, s.url), s.change...)}
	account, user := webtest.Keyed(uuid.New(), "test"), newSigner(t)
	for range 3 {
		location, _, signature := s.make(t, user, "permit2", account)
		var posts sync.WaitGroup
		for n := range 8 {
			posts.Go(func() {
				if got := cores[n%2].Call(t, "POST", location+"/signature", signature, account...); got.Status != 200 && got.Status != 503 {
					t.Errorf("signature %d: %+v", n, got)
				}
			})
		}
		posts.Wait()
		if posted := s.sent(); len(posted) != 1 {
			t.Errorf("%d orders were sent", len(posted))
		}
	}
}

// A solver is asked what became of an order until it is open, and what it says is kept.
func TestFollowSubmissions(t *testing.T) {
	t.Parallel()
	s := startSubmitting(t)
	account, user := webtest.Keyed(uuid.New(), "test"), newSigner(t)
	location, _, signature := s.make(t, user, "permit2", account)
	s.Call(t, "POST", location+"/signature", signature, account...)
	follow := func() (asked []string) {
		t.Helper()
		for after, more := uuid.Nil, true; more; {
			var err error
			if after, more, err = s.config.API.Quotes.FollowSubmissions(t.Context(), after); err != nil {
				t.Fatal(err)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		asked, s.asked = s.asked, nil
		return asked
	}
	due := func() {
		pgtest.Exec(t, s.Store, `UPDATE transfers SET submission_due_at = now() WHERE submission_due_at IS NOT NULL`)
	}
	if asked := follow(); len(asked) != 0 {
		t.Errorf("within the minute: %v", asked)
	}
	for _, c := range []struct {
		status int
		body   string
	}{{400, `{"error":"ORDER_NOT_FOUND"}`}, {200, `{"status":"pending"}`}, {200, `{"order":{"status":{"executed":[]}}}`}, {500, ``}, {200, `[]`}} {
		s.answer(c.status, c.body)
		due()
		if diff := cmp.Diff([]string{"/api/v1/orders/" + s.id}, follow()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
		if diff := cmp.Diff(any(submission("received", "queued")), s.submitted(t, location, account)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
	s.answer(200, `{"id":"<id>","status":{"failed":["Prepare","revert 0x06f68b62"]}}`)
	due()
	follow()
	if diff := cmp.Diff(any(submission("failed", "Prepare: revert 0x06f68b62")), s.submitted(t, location, account)); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	due()
	if asked := follow(); len(asked) != 0 {
		t.Errorf("failed, and asked again: %v", asked)
	}
	if diff := cmp.Diff(map[string]float64{"received": 1, "failed": 1}, s.counted(t)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}

	opened, _, signature := s.make(t, user, "permit2", account)
	s.answer(200, `{"orderId":"<id>","status":"received"}`)
	s.Call(t, "POST", opened+"/signature", signature, account...)
	pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'submitted', hash = '0x' || repeat('a', 64) WHERE submission_due_at IS NOT NULL`)
	due()
	if asked := follow(); len(asked) != 0 {
		t.Errorf("opened: %v", asked)
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers WHERE submission_due_at IS NOT NULL`); n != 0 {
		t.Errorf("%d orders are to be asked about", n)
	}
}

// Only an order of a quote whose provider takes orders can be submitted. A refusal uses no quote up.
func TestCreateTransfer_SubmitNotSupported(t *testing.T) {
	t.Parallel()
	s := start(t, quoting(t, providertest.Start(t, "solver", network.Test)))
	key := webtest.Keyed(uuid.New(), "test")
	refusal := webtest.Refused(t, 422, "SUBMIT_NOT_SUPPORTED", "Only an order of a quote can be submitted, and only to a provider of quotes that takes orders. "+
		"Use such a quote, or leave submit out and send the transaction of GET /v2/transfers/{id}/relay.")
	const members = `"signing":"permit2","submit":true`
	webtest.Same(t, "without a quote", refusal, s.Call(t, "POST", "/v2/transfers", strings.Replace(webtest.BridgeBody, "{", "{"+members+",", 1), key...))
	webtest.Same(t, "without signing", webtest.Invalid(t, "/submit", "needs signing: an order is submitted with its user's signature"),
		s.Call(t, "POST", "/v2/transfers", strings.Replace(webtest.BridgeBody, "{", `{"submit":true,`, 1), key...))
	id := s.quote(t, key...)
	webtest.Same(t, "a provider without orders", refusal, s.Call(t, "POST", "/v2/transfers", of(id, ","+members), key...))
	if got := s.Call(t, "POST", "/v2/transfers", of(id, `,"signing":"permit2"`), key...); got.Status != 201 {
		t.Errorf("the quote is not usable: %+v", got)
	}
}
