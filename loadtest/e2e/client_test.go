package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
)

// apiClient is the Go client with an API key. It tries each request once, so that no failure passes unseen, and each response is held to
// openapi.json.
func apiClient(t *testing.T, gateway, key string) *intents.Client {
	t.Helper()
	return must(intents.New(gateway, key, intents.WithHTTPClient(&http.Client{Transport: checked{t}}), intents.WithMaxTries(1)))(t)
}

// must ends the test on an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// failed ends the test unless a request of the Go client was refused with this status and code.
func failed(t *testing.T, err error, status int, code intents.Code) intents.Error {
	t.Helper()
	refusal, ok := errors.AsType[*intents.Error](err)
	if !ok || refusal.Status != status || refusal.Code != code || refusal.Message == "" {
		t.Fatalf("%v, want %d %s", err, status, code)
	}
	return *refusal
}

// rawClient sends what the Go client does not: requests of sessions, malformed ones, and those whose status or header is looked at. Each
// response is held to openapi.json. An empty key is none.
func rawClient(t *testing.T, gateway, key string) *system.Client {
	t.Helper()
	c := system.NewClient(t, gateway, key)
	c.HTTP = &http.Client{Timeout: time.Minute, Transport: checked{t}}
	return c
}

// refused fails the test unless the answer is a refusal with this status and code.
func refused(t *testing.T, a system.Answer, status int, code string) {
	t.Helper()
	if got := system.Expect[struct{ Code, Message string }](t, a, status); got.Code != code || got.Message == "" {
		t.Errorf("refused with %+v, want %s", got, code)
	}
}

type createdKey struct{ ID, Key, Prefix, Environment string }

// person is an account, signed in.
type person struct {
	*system.Client
	t               *testing.T
	email, password string
}

const password = "correct horse battery"

var people atomic.Int64

func uniqueEmail(who string) string {
	return fmt.Sprintf("%s-%d-%d@example.com", who, time.Now().UnixNano(), people.Add(1))
}

// newPerson signs up at a gateway, opens the link that is mailed, and signs in.
func newPerson(t *testing.T, gateway string) person {
	t.Helper()
	visitor, email := rawClient(t, gateway, ""), uniqueEmail("person")
	person{Client: visitor, t: t}.post("/auth/sign-up/email", map[string]any{"name": "Person", "email": email, "password": password})
	system.Expect[any](t, visitor.Do(http.MethodGet, "/auth/verify-email?token="+mailedLink(t, email).Query().Get("token"), nil), http.StatusOK)
	return signIn(t, gateway, email, password)
}

// signIn is the person with this address and password.
func signIn(t *testing.T, gateway, email, password string) person {
	t.Helper()
	p := person{Client: rawClient(t, gateway, ""), t: t, email: email, password: password}
	p.HTTP.Jar = must(cookiejar.New(nil))(t)
	p.post("/auth/sign-in/email", map[string]any{"email": email, "password": password})
	return p
}

// post wants the answer 200.
func (p person) post(path string, body any) system.Answer {
	p.t.Helper()
	a := p.Do(http.MethodPost, path, body)
	if a.Status != http.StatusOK {
		p.t.Fatalf("POST %s: %d %s", path, a.Status, a.Body)
	}
	return a
}

func (p person) newKey() createdKey {
	p.t.Helper()
	return system.Expect[createdKey](p.t, p.post("/auth/api-key/create", map[string]any{"name": "key"}), http.StatusOK)
}

// freshKey is a test key of an account of its own, whose limit nobody has touched.
func freshKey(t *testing.T) string {
	t.Helper()
	return newPerson(t, shared.Stack.Env().GatewayURL).newKey().Key
}

// Addresses of the default lists, and of well-known development accounts and contracts.
const (
	alice       = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	bob         = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	usdc        = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238" // on Sepolia
	nativeToken = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"

	sepolia, optimism, arbitrum = 11155111, 11155420, 421614
	usdcOnOptimism              = "0x5fd84259d66Cd46123540766Be93DFE6D43130D7"
	wethOnOptimism              = "0x4200000000000000000000000000000000000006"
	usdcOnArbitrum              = "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d"

	inputSettler = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
	settlement   = `{"scheme":"oif-v1/StandardOrder","deployment":"e2e","inputSettler":"` + inputSettler + `",
		"outputSettler":"0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512","oracle":"0x9fE46736679d2D9a65F0992F2272dE9f3c7fa6e0"}`
)

func on(chain int, address string) string { return fmt.Sprintf("eip155:%d:%s", chain, address) }

// body is a request to create an intent; empty parts are left out.
func body(from, fromToken, amount, to, toToken, least string) intents.CreateTransfer {
	return intents.CreateTransfer{
		Source:      &intents.SourceRequest{Account: from, Token: fromToken, Amount: intents.Amount(amount)},
		Destination: &intents.DestinationRequest{Account: to, Token: toToken, Amount: intents.Amount(least)},
	}
}

// payment is a request for a transfer of so many units of USDC from Alice to Bob.
func payment(amount string) intents.CreateTransfer {
	return body(on(sepolia, alice), on(sepolia, usdc), amount, on(sepolia, bob), "", "")
}

// create makes an intent, once core knows its chains.
func create(t *testing.T, api *intents.Client, request intents.CreateTransfer) (made *intents.Transfer) {
	t.Helper()
	asynctest.Succeeds(t, func() (err error) {
		made, err = api.Transfers.Create(t.Context(), request)
		return err
	})
	return made
}

// pay makes so many transfers and returns their ids.
func pay(t *testing.T, api *intents.Client, count int) (ids []string) {
	t.Helper()
	for range count {
		ids = append(ids, must(api.Transfers.Create(t.Context(), payment("1")))(t).ID)
	}
	return ids
}
