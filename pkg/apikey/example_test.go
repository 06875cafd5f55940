package apikey_test

import (
	"fmt"
	"strings"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

func ExampleParse() {
	key, err := apikey.Parse("sk_test_" + strings.Repeat("a", 64))
	fmt.Println(key, key.Environment() == network.Test, err) // a key prints redacted
	_, err = apikey.Parse("sk_prod_" + strings.Repeat("a", 64))
	fmt.Println(err)
	// Output:
	// sk_test_[redacted] true <nil>
	// an API key is sk_test_ or sk_live_ and 64 letters and digits
}
