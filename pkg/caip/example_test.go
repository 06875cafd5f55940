package caip_test

import (
	"fmt"

	"intents.internal/pkg/caip"
)

func ExampleParseAccountID() {
	id, err := caip.ParseAccountID("eip155:1:0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
	fmt.Println(id, err) // EIP-55 is emitted whatever case came in
	_, err = caip.ParseAccountID("eip155:1:0xF39fd6e51aad88f6f4ce6ab8827279cfffb92266")
	fmt.Println(err)
	// Output:
	// eip155:1:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 <nil>
	// the address has a wrong EIP-55 checksum; copy it again or write it all in lower case
}

func ExampleParseChainID() {
	id, err := caip.ParseChainID("eip155:11155111")
	fmt.Println(id.Namespace, id.Reference, err)
	// Output: eip155 11155111 <nil>
}
