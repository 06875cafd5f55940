package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"intents.internal/pkg/client/webhook"
)

func ExampleVerify() {
	const secret = "whsec_RVhBTVBMRUVYQU1QTEVFWEFNUExFRVhBTVBMRUU="
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhook.MaxBody))
		if err != nil {
			http.Error(w, "too long", http.StatusRequestEntityTooLarge)
			return
		}
		event, err := webhook.Verify(body, r.Header, secret)
		if errors.Is(err, webhook.ErrSecret) {
			http.Error(w, "the secret is malformed", http.StatusInternalServerError)
			return
		}
		if err != nil {
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		fmt.Println(event.ID, event.Type) // remember the id: an event may come twice
	}
	w := httptest.NewRecorder()
	receive(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/hooks", strings.NewReader("{}")))
	fmt.Println(w.Code)
	// Output: 401
}
