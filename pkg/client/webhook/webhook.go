// Package webhook verifies what the Transfer Intent Service posts to webhooks, by Standard Webhooks 1.0:
//
//	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhook.MaxBody))
//	event, err := webhook.Verify(body, r.Header, secret)
//	if err != nil {
//		http.Error(w, "not signed", http.StatusUnauthorized)
//		return
//	}
//
// Respond with 2xx within 15 seconds, and do the work afterwards. An event can come more than once, with the same id, and out of order.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"intents.internal/pkg/client"
)

// MaxBody is more than the longest body that the service posts, in bytes.
const MaxBody = 32 << 10

// tolerance is how far a request's time may be from this machine's.
const tolerance = 5 * time.Minute

// Errors of requests that are not to be believed. Respond with 401.
var (
	// ErrUnsigned is a request without one of the three header fields of a signature, or with a malformed one.
	ErrUnsigned = errors.New("the request has no signature")
	// ErrTimestamp is a request that is more than five minutes old or ahead: a replay, or this machine's clock is wrong.
	ErrTimestamp = errors.New("the request's time is more than five minutes from this machine's")
	// ErrSignature is a request that none of the secrets has signed.
	ErrSignature = errors.New("none of the secrets has signed the request")
)

// ErrSecret is a mistake in the caller's secrets, whatever the request. Respond with 500.
var ErrSecret = errors.New("a webhook's secret is whsec_ and base64")

// Verify returns the event of a request if one of the secrets has signed its body, the bytes as they arrived. Give both secrets during a
// rotation. The event's ID is that of the header field webhook-id.
func Verify(body []byte, header http.Header, secrets ...string) (*client.Event, error) {
	return verify(body, header, secrets, time.Now())
}

func verify(body []byte, header http.Header, secrets []string, now time.Time) (*client.Event, error) {
	keys, err := parseSecrets(secrets)
	if err != nil {
		return nil, err
	}
	id, timestamp, signatures := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), header.Get("Webhook-Signature")
	if id == "" || timestamp == "" || signatures == "" || strings.Trim(timestamp, "0123456789") != "" {
		return nil, ErrUnsigned
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return nil, ErrUnsigned
	}
	if off := now.Unix() - seconds; off > int64(tolerance.Seconds()) || off < -int64(tolerance.Seconds()) {
		return nil, ErrTimestamp
	}
	if !signed(id+"."+timestamp+".", body, signatures, keys) {
		return nil, ErrSignature
	}
	event := &client.Event{}
	if err := json.Unmarshal(body, event); err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	event.ID = id
	return event, nil
}

// signed tells whether a signature of version v1 is that of one of the keys. It compares in constant time.
func signed(head string, body []byte, signatures string, keys [][]byte) bool {
	found := false
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(head))
		mac.Write(body)
		want := mac.Sum(nil)
		for signature := range strings.SplitSeq(signatures, " ") {
			text, ok := strings.CutPrefix(signature, "v1,")
			got, err := base64.StdEncoding.DecodeString(text)
			found = found || ok && err == nil && hmac.Equal(got, want)
		}
	}
	return found
}

func parseSecrets(secrets []string) (keys [][]byte, err error) {
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			return nil, ErrSecret // without the text
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: none was given", ErrSecret)
	}
	return keys, nil
}
