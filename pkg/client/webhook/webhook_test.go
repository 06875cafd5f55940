package webhook_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"intents.internal/pkg/client"
	"intents.internal/pkg/client/webhook"
)

// table is testdata/webhooks.json, which the client in TypeScript is held to as well.
type table struct {
	Now   int64
	Cases []struct {
		Name     string
		Verified bool
		Secrets  []string
		Headers  map[string]string
		Body     string
	}
	RefusedSecrets []struct {
		Name    string
		Secrets []string
	}
}

func readTable(tb testing.TB) (read table) {
	tb.Helper()
	text, err := os.ReadFile("../testdata/webhooks.json")
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || len(read.Cases) < 20 || len(read.RefusedSecrets) < 5 {
		tb.Fatalf("%d cases, %v", len(read.Cases), err)
	}
	return read
}

func headerOf(fields map[string]string) http.Header {
	header := http.Header{}
	for name, value := range fields {
		header.Set(name, value)
	}
	return header
}

func TestVerify(t *testing.T) {
	t.Parallel()
	read := readTable(t)
	now := time.Unix(read.Now, 0)
	for _, c := range read.Cases {
		event, err := webhook.VerifyAt([]byte(c.Body), headerOf(c.Headers), c.Secrets, now)
		if !c.Verified {
			if event != nil || !errors.Is(err, webhook.ErrUnsigned) && !errors.Is(err, webhook.ErrTimestamp) && !errors.Is(err, webhook.ErrSignature) {
				t.Errorf("%s: %+v, %v", c.Name, event, err)
			}
			continue
		}
		if err != nil || event.ID != c.Headers["webhook-id"] || event.Type != client.TransferConfirmed || event.Transfer == nil || *event.Sequence != 3 {
			t.Errorf("%s: %+v, %v", c.Name, event, err)
		}
	}
	for _, c := range read.RefusedSecrets {
		if _, err := webhook.VerifyAt([]byte(read.Cases[0].Body), headerOf(read.Cases[0].Headers), c.Secrets, now); !errors.Is(err, webhook.ErrSecret) {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	if _, err := webhook.Verify([]byte(read.Cases[0].Body), headerOf(read.Cases[0].Headers), read.Cases[0].Secrets...); !errors.Is(err, webhook.ErrTimestamp) {
		t.Errorf("by today's clock: %v", err)
	}
}

// A request that differs from a signed one in any way is refused, and none panics.
func FuzzVerify(f *testing.F) {
	read := readTable(f)
	for _, c := range read.Cases {
		f.Add([]byte(c.Body), c.Headers["webhook-id"], c.Headers["webhook-timestamp"], c.Headers["webhook-signature"])
	}
	valid := map[[3]string]bool{}
	for _, c := range read.Cases {
		if c.Verified {
			valid[[3]string{c.Headers["webhook-id"], c.Headers["webhook-timestamp"], c.Body}] = true
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, id, timestamp, signature string) {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature}}
		event, err := webhook.VerifyAt(body, header, read.Cases[0].Secrets, time.Unix(read.Now, 0))
		if (event == nil) == (err == nil) || err == nil && !valid[[3]string{id, timestamp, string(body)}] {
			t.Errorf("%+v, %v", event, err)
		}
	})
}
