package webhooks_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
)

func TestRules_CheckURL(t *testing.T) {
	t.Parallel()
	r := &webhooks.Rules{Networks: outbound.NewNetworks(nil)}
	const ok, invalid, notAllowed = "ok", "invalid", "not allowed"
	for text, want := range map[string]string{
		"https://example.com": ok, "https://example.com/a?b=c": ok, "https://example.com:443/": ok, "https://example.com:80/": ok,
		"https://xn--bcher-kva.example/": ok, "https://1.1.1.1/": ok, "https://[2606:4700::1]/": ok, "HTTPS://EXAMPLE.COM/": ok,
		"https://" + strings.Repeat("a", 2040): ok, "https://" + strings.Repeat("a", 2041): invalid,
		"": invalid, "example.com": invalid, "//example.com": invalid, "https:example.com": invalid, "https://": invalid, "https:///a": invalid,
		"http://example.com": invalid, "ftp://example.com": invalid, "file:///etc/passwd": invalid, "javascript:alert(1)": invalid,
		"https://u@example.com": invalid, "https://u:p@example.com": invalid, "https://:@example.com": invalid, "https://@example.com": invalid,
		"https://example.com#": invalid, "https://example.com/#a": invalid, "https://example.com:": invalid, "https://example.com:0": invalid,
		"https://example.com:65536": invalid, "https://example.com:x": invalid, "https://exa mple.com": invalid, "https://example.com/ä": invalid,
		"https://１２７.0.0.1/": invalid, "https://example.com\n": invalid, "https://example.com/\x00": invalid, "https://[::1": invalid,
		"https://10.0.0.1": notAllowed, "https://127.0.0.1": notAllowed, "https://169.254.169.254/latest": notAllowed, "https://[::1]": notAllowed,
		"https://[::ffff:10.0.0.1]": notAllowed, "https://[64:ff9b::a00:1]": notAllowed, "https://[fe80::1%25eth0]": notAllowed,
		"https://2130706433": notAllowed, "https://0x7f000001": notAllowed, "https://0x7f.1": notAllowed, "https://0177.0.0.1": notAllowed,
		"https://127.1": notAllowed, "https://127.0.0.1.": notAllowed, "https://0x": notAllowed, "https://example.com:8443": notAllowed,
		"https://localhost": notAllowed, "https://a.LOCALHOST./": notAllowed, "https://1.1.1.1:22": notAllowed, "https://168.63.129.16": notAllowed,
	} {
		var field *account.InvalidError
		got := ok
		err := r.CheckURL(text, network.Live)
		switch {
		case errors.As(err, &field) && field.Field == "url":
			got = invalid
		case errors.Is(err, webhooks.ErrURLNotAllowed):
			got = notAllowed
		case err != nil:
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60q: %s (%v), want %s", text, got, err, want)
		}
	}
}

// Allowed networks open any port, and http in the test environment; no other network.
func TestRules_CheckURL_AllowedNetworks(t *testing.T) {
	t.Parallel()
	allowed, err := outbound.ParsePrefixes("10.1.0.0/16,127.0.0.1/32,fd00::/8")
	if err != nil {
		t.Fatal(err)
	}
	r := &webhooks.Rules{Networks: outbound.NewNetworks(allowed)}
	for text, ok := range map[string]bool{
		"http://10.1.2.3:8080/": true, "http://localhost:9000/": true, "http://[fd00::1]:81/": true, "http://name.internal:8080/": true,
		"http://10.2.0.1/": false, "http://127.0.0.2/": false, "http://[::ffff:10.1.2.3]/": false, "http://1.1.1.1:8080/": false,
	} {
		if err := r.CheckURL(text, network.Test); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if err := r.CheckURL(text, network.Live); err == nil {
			t.Errorf("%s is allowed for live", text)
		}
	}
}

func rules(t *testing.T, current, previous []byte) *webhooks.Rules {
	t.Helper()
	sealer, err := webhooks.NewSealer(current, previous)
	if err != nil {
		t.Fatal(err)
	}
	return &webhooks.Rules{Networks: outbound.NewNetworks(nil), Sealer: sealer}
}

func newEndpoint(t *testing.T, r *webhooks.Rules) (*webhooks.Endpoint, webhooks.Secret) {
	t.Helper()
	owner := feed.Owner{AccountID: uuid.New(), Environment: network.Live}
	e, secret, err := r.New(owner, webhooks.Draft{URL: "https://example.com"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return e, secret
}

// A secret opens under the current and the previous key, for its own endpoint alone.
func TestSealer(t *testing.T) {
	t.Parallel()
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	e, secret := newEndpoint(t, rules(t, first, nil))
	both := rules(t, second, first).Sealer
	got, outdated, err := both.Open(e.ID, e.Secrets.Current)
	if err != nil || !outdated || got.Reveal() != secret.Reveal() {
		t.Errorf("%v, %v, %v", got.Reveal(), outdated, err)
	}
	if _, _, err := both.Open(uuid.New(), e.Secrets.Current); err == nil {
		t.Error("it opens for another endpoint")
	}
	if changed, err := both.Reseal(e); !changed || err != nil {
		t.Errorf("reseal: %v, %v", changed, err)
	}
	if changed, err := both.Reseal(e); changed || err != nil {
		t.Errorf("reseal again: %v, %v", changed, err)
	}
	if secrets, err := rules(t, second, nil).Sealer.Secrets(e, time.Now()); err != nil || len(secrets) != 1 || secrets[0].Reveal() != secret.Reveal() {
		t.Errorf("%v, %v", secrets, err)
	}
	if _, err := rules(t, first, nil).Sealer.Secrets(e, time.Now()); err == nil {
		t.Error("it opens under a key that it was not sealed with")
	}
	if bytes.Contains(e.Secrets.Current, []byte(secret.Reveal())) || strings.Contains(fmt.Sprintf("%v %+v %#v", secret, secret, secret), secret.Reveal()) {
		t.Error("the secret shows")
	}
}

// A secret under a lost key that a rotation has replaced holds up neither signing nor another key.
func TestSealer_LostKey(t *testing.T) {
	t.Parallel()
	lost, second, third := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 32)
	e, _ := newEndpoint(t, rules(t, lost, nil))
	secret, _, err := rules(t, second, nil).Rotate(e, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	replaced := e.Secrets.Previous
	if changed, err := rules(t, third, second).Sealer.Reseal(e); !changed || err != nil || !bytes.Equal(e.Secrets.Previous, replaced) {
		t.Errorf("reseal: %v, %v", changed, err)
	}
	if secrets, err := rules(t, third, nil).Sealer.Secrets(e, time.Now()); err != nil || len(secrets) != 1 || secrets[0].Reveal() != secret.Reveal() {
		t.Errorf("%v, %v", secrets, err)
	}
	if secrets, err := rules(t, third, lost).Sealer.Secrets(e, time.Now()); err != nil || len(secrets) != 2 {
		t.Errorf("with the key that was found: %v, %v", secrets, err)
	}
}

// An attempt that fails is repeated after the schedule's time, by a fifth sooner or later, and not before Retry-After.
func TestAttempt_After(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	waits := []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	for n, wait := range waits {
		shortest, longest := 48*time.Hour, time.Duration(0)
		for range 2_000 {
			status, next := webhooks.Attempt{Outcome: webhooks.TimedOut, EndedAt: now}.After(n)
			if status != webhooks.Retrying {
				t.Fatalf("after %d attempts: %s", n+1, status)
			}
			shortest, longest = min(shortest, next.Sub(now)), max(longest, next.Sub(now))
		}
		if shortest < wait*80/100 || shortest > wait*85/100 || longest > wait*120/100 || longest < wait*115/100 {
			t.Errorf("after %d attempts: %s to %s, want %s by a fifth more or less", n+1, shortest, longest, wait)
		}
	}
	if status, _ := (webhooks.Attempt{Outcome: webhooks.TimedOut, EndedAt: now}).After(len(waits)); status != webhooks.Failed {
		t.Errorf("after the last: %s", status)
	}
	for status, retried := range map[int]bool{429: true, 503: true, 500: false} {
		for retryAfter, want := range map[time.Duration]time.Duration{0: 0, 2 * time.Hour: 2 * time.Hour, 240 * time.Hour: 24 * time.Hour} {
			a := webhooks.NewAnswer(status, retryAfter, now)
			if !retried {
				want = 0
			}
			if a.RetryAfter != want {
				t.Errorf("%d with %s: %s, want %s", status, retryAfter, a.RetryAfter, want)
			}
			if _, next := a.After(0); next.Sub(now) < want {
				t.Errorf("%d with %s: the next attempt is after %s", status, retryAfter, next.Sub(now))
			}
		}
	}
}

func TestRules_Change(t *testing.T) {
	t.Parallel()
	r := rules(t, make([]byte, 32), nil)
	e, _ := newEndpoint(t, r)
	now := time.Now()
	e.FailingSince = &now
	before := *e
	for _, c := range []webhooks.Change{
		{URL: new("https://10.0.0.1")},
		{Types: new([]string{"no"})},
		{Types: &[]string{}},
		{Description: new(strings.Repeat("x", 257))},
		{URL: new("https://other.example"), Description: new("\x00")},
	} {
		if _, err := r.Change(e, c, now); err == nil || e.URL != before.URL || e.FailingSince == nil {
			t.Errorf("%+v: %v, %+v", c, err, e)
		}
	}
	if _, err := r.Change(e, webhooks.Change{URL: new("https://other.example")}, now); err != nil || e.FailingSince != nil {
		t.Errorf("another URL: %v, %+v", err, e)
	}
	e.FailingSince = &now
	if _, err := r.Change(e, webhooks.Change{Enabled: new(false)}, now); err != nil || e.DisabledReason != webhooks.DisabledByOwner || e.FailingSince != nil {
		t.Errorf("disabled: %v, %+v", err, e)
	}
	if detail, err := r.Change(e, webhooks.Change{Enabled: new(true)}, now); err != nil || e.DisabledReason != "" || detail != "enabled" {
		t.Errorf("enabled: %q, %v, %+v", detail, err, e)
	}
}

func FuzzRules_CheckURL(f *testing.F) {
	for _, text := range []string{"https://example.com", "https://u:p@h:1/#", "https://[::1]:80", "https://0x7f.1", "https://[fe80::1%25lo]"} {
		f.Add(text)
	}
	r := &webhooks.Rules{Networks: outbound.NewNetworks(nil)}
	f.Fuzz(func(t *testing.T, text string) {
		if r.CheckURL(text, network.Test) != nil {
			return
		}
		request, err := http.NewRequest(http.MethodPost, text, nil) //nolint:noctx // it is not sent
		if err != nil {
			t.Fatalf("%q is taken and cannot be requested: %v", text, err)
		}
		if request.URL.User != nil || request.URL.Fragment != "" || request.URL.Host == "" {
			t.Errorf("%q is taken: %+v", text, request.URL)
		}
	})
}
