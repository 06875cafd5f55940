package wire_test

import (
	"fmt"

	"intents.internal/pkg/wire"
)

func ExampleDecodeTransferRequest() {
	_, issues := wire.DecodeTransferRequest([]byte(`{
		"source": {"account": "eip155:1:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "token": "eip155:1:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE", "amount": 5},
		"destination": {"account": "eip155:1:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"},
		"note": "unknown members are refused"
	}`))
	for _, issue := range issues {
		fmt.Println(issue.Path, issue.Message)
	}
	// Output:
	// /source/amount must be a string
	// /note is not a known field
}
