package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"intents.internal/core/outbound"
)

// A client for receivers that anybody may name reaches public addresses alone.
func ExampleNewClient() {
	client := outbound.NewClient(outbound.Config{Networks: outbound.NewNetworks(nil), Timeout: 15 * time.Second, MaxBody: 4 << 10})
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://127.0.0.1/hook", http.NoBody)
	if err != nil {
		panic(err)
	}
	response, err := client.Do(request)
	if err == nil {
		defer response.Body.Close()
	}
	fmt.Println(errors.Is(err, outbound.ErrAddressNotAllowed))
	// Output: true
}
