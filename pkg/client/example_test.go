package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"intents.internal/pkg/client"
)

// service answers the examples' requests in place of a running one. Its intent is created at first and final at the third read.
func service() *httptest.Server {
	const record = `{"id": "01a2142b", "type": "bridge", "tx": {"chainId": 31337, "to": "0xE1620de3a36756143582895e7E426Ade69e4f2D7"}`
	statuses := []string{`, "status": "submitted"}`, `, "status": "confirmed"}`, `, "status": "filled", "final": true}`}
	answers := map[string]string{
		"POST /v2/transfers":                      record + `, "status": "created"}`,
		"POST /v2/transfers/01a2142b/transaction": record + `, "status": "submitted"}`,
		"POST /v2/transfers/01a2142b/signature":   record + `, "status": "created", "signing": {"signedAt": "2026-11-28T12:00:00Z"}}`,
		"GET /v2/transfers/01a2142b/relay":        `{"tx": {"chainId": 31337, "to": "0x048e6f1D1922cE4A0d528cfdC9D945Cfb1DA4000", "value": "0"}}`,
		"POST /v2/quotes": `{"quotes": [{"id": "01a2142a", "provider": "solver", "destination": {"amount": "997000"}, "fees": [` +
			`{"kind": "total", "amount": "3000"}]}], "failures": []}`,
		"POST /v2/transfers/batch": `{"id": "01a2142c", "count": 2, "transfers": [{"id": "01a2142d"}, {"id": "01a2142e"}]}`,
		"GET /v2/batches/01a2142c/calls": `{"requests": [{"transfers": ["01a2142d", "01a2142e"], "calls": {"chainId": "0x7a69", "calls": [` +
			`{"to": "0xE1620de3a36756143582895e7E426Ade69e4f2D7"}, {"to": "0xE1620de3a36756143582895e7E426Ade69e4f2D7"}]}}], "excluded": []}`,
		"POST /v2/batches/01a2142c/transaction": `{"id": "01a2142c", "count": 2, "statuses": {"submitted": 2}}`,
		"GET /v2/events": `{"events": [{"id": "evt_1", "type": "transfer.created", "data": {"id": "01a2142b", "status": "created"}},` +
			`{"id": "evt_2", "type": "transfer.submitted", "data": {"id": "01a2142b", "status": "submitted"}}], "next": "cursor-2"}`,
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch at := r.Method + " " + r.URL.Path; {
		case at == "GET /v2/transfers/01a2142b":
			fmt.Fprint(w, record+statuses[0])
			statuses = statuses[min(1, len(statuses)-1):]
		case at == "GET /v2/transfers" && r.URL.Query().Get("cursor") == "":
			w.Header().Set("Link", `</v2/transfers?limit=100&cursor=second>; rel="next"`)
			fmt.Fprint(w, `[{"id": "3", "status": "filled"}, {"id": "2", "status": "filled"}]`)
		case at == "GET /v2/transfers":
			fmt.Fprint(w, `[{"id": "1", "status": "filled"}]`)
		case answers[at] != "":
			fmt.Fprint(w, answers[at])
		default:
			w.Header().Set("X-Request-Id", "7f1c")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"code": "NOT_FOUND", "message": "There is no such transfer."}`)
		}
	}))
}

// api is a client of the example's service, and what ends both.
func api() (*client.Client, context.Context, func()) {
	server := service()
	c, err := client.New(server.URL, "sk_test_key")
	if err != nil {
		panic(err)
	}
	return c, context.Background(), server.Close
}

func ExampleTransfers_Create() {
	c, ctx, end := api()
	defer end()
	amount, err := client.ParseAmount("1", 6) // 1 USDC
	if err != nil {
		fmt.Println(err)
		return
	}
	transfer, err := c.Transfers.Create(ctx, client.CreateTransfer{
		Source: &client.SourceRequest{
			Account: "eip155:31337:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
			Token:   "eip155:31337:0xE1620de3a36756143582895e7E426Ade69e4f2D7",
			Amount:  amount,
		},
		Destination:    &client.DestinationRequest{Account: "eip155:31337:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"},
		IdempotencyKey: "invoice-42",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(transfer.Status, "to sign:", transfer.Tx.To)

	// A wallet signs and sends transfer.Tx, or its Calls, and gives the hash.
	transfer, err = c.Transfers.Report(ctx, transfer.ID, "0x"+strings.Repeat("a", 64))
	fmt.Println(transfer.Status, err)
	// Output:
	// created to sign: 0xE1620de3a36756143582895e7E426Ade69e4f2D7
	// submitted <nil>
}

func ExampleTransfers_SubmitSignature() {
	c, ctx, end := api()
	defer end()
	transfer, err := c.Transfers.Create(ctx, client.CreateTransfer{QuoteID: "01a2142a", Signing: client.SigningSchemeERC3009})
	if err != nil {
		fmt.Println(err)
		return
	}

	// A wallet signs transfer.Signing.TypedData by eth_signTypedData_v4, which gives the signature.
	transfer, err = c.Transfers.SubmitSignature(ctx, transfer.ID, "0x"+strings.Repeat("a", 130))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("signed at", transfer.Signing.SignedAt.Format(time.TimeOnly))

	// Any account sends this transaction, and the hash is reported by Report.
	relay, err := c.Transfers.Relay(ctx, transfer.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("to send:", relay.Tx.To)
	// Output:
	// signed at 12:00:00
	// to send: 0x048e6f1D1922cE4A0d528cfdC9D945Cfb1DA4000
}

func ExampleBatches_Create() {
	c, ctx, end := api()
	defer end()
	const account, token = "eip155:31337:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "eip155:31337:0xE1620de3a36756143582895e7E426Ade69e4f2D7"
	payroll := client.CreateBatch{IdempotencyKey: "payroll-2026-11"}
	for _, recipient := range []string{"0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"} {
		payroll.Transfers = append(payroll.Transfers, client.BatchItem{
			Source:      client.SourceRequest{Account: account, Token: token, Amount: "1000000"},
			Destination: client.DestinationRequest{Account: "eip155:31337:" + recipient},
		})
	}
	batches, err := c.Batches.Create(ctx, payroll) // one, of a list that is not longer than 100
	if err != nil {
		fmt.Println(err) // safe to repeat, with the same key
		return
	}
	for _, batch := range batches {
		calls, err := c.Batches.Calls(ctx, batch.ID, client.CallsQuery{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, request := range calls.Requests {
			fmt.Println("to sign:", len(request.Calls.Calls), "calls for", len(request.Transfers), "intents")
			// A wallet takes request.Calls by wallet_sendCalls, and wallet_getCallsStatus gives the hash of its receipt.
			sent, err := c.Batches.Report(ctx, batch.ID, "0x"+strings.Repeat("a", 64), request.Transfers...)
			fmt.Println(sent.Statuses, err)
		}
	}
	// Output:
	// to sign: 2 calls for 2 intents
	// map[submitted:2] <nil>
}

func ExampleQuotes_Create() {
	c, ctx, end := api()
	defer end()
	const account = "eip155:31337:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	quotes, err := c.Quotes.Create(ctx, client.CreateQuotes{
		Source:      client.SourceRequest{Account: account, Token: "eip155:31337:0xE1620de3a36756143582895e7E426Ade69e4f2D7", Amount: "1000000"},
		Destination: client.DestinationRequest{Account: account, Token: "eip155:31337:0x1Fa5e93549a4c07583E8e20806E5249AB96D7321"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	best := quotes.Quotes[0]
	fmt.Printf("%s brings %s, less fees of %s\n", best.Provider, best.Destination.Amount.Decimal(6), best.Fees[0].Amount.Decimal(6))
	transfer, err := c.Transfers.Create(ctx, client.CreateTransfer{QuoteID: best.ID})
	fmt.Println(transfer.Status, err)
	// Output:
	// solver brings 0.997, less fees of 0.003
	// created <nil>
}

func ExampleTransfers_All() {
	c, ctx, end := api()
	defer end()
	for transfer, err := range c.Transfers.All(ctx, client.TransferQuery{Status: []client.TransferStatus{client.StatusFilled}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(transfer.ID, transfer.Status)
	}
	// Output:
	// 3 filled
	// 2 filled
	// 1 filled
}

func ExampleTransfers_Wait() {
	c, ctx, end := api()
	defer end()
	transfer, err := c.Transfers.Wait(ctx, "01a2142b", client.WaitOptions{
		OnChange: func(transfer *client.Transfer) { fmt.Println("is", transfer.Status) },
	})
	fmt.Println("ends", transfer.Status, err)
	// Output:
	// is submitted
	// is confirmed
	// is filled
	// ends filled <nil>
}

func ExampleEvents_Follow() {
	c, ctx, end := api()
	defer end()
	stored := client.Now // the Next that was stored last
	for page, err := range c.Events.Follow(ctx, client.EventQuery{After: stored}) {
		if errors.Is(err, client.CodeCursorExpired) {
			fmt.Println("begin again, and compare with the list of transfers")
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, event := range page.Events {
			fmt.Println(event.Type, event.Transfer.Status)
		}
		stored = page.Next // in the same database transaction as what was made of the events
		break
	}
	fmt.Println("read on after", stored)
	// Output:
	// transfer.created created
	// transfer.submitted submitted
	// read on after cursor-2
}

func ExampleError() {
	c, ctx, end := api()
	defer end()
	_, err := c.Transfers.Get(ctx, "another")
	fmt.Println(err)
	var failure *client.Error
	if errors.Is(err, client.CodeNotFound) && errors.As(err, &failure) {
		fmt.Println(failure.Status, failure.RequestID)
	}
	// Output:
	// 404 NOT_FOUND: There is no such transfer. (request 7f1c)
	// 404 7f1c
}
