package account_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

func TestParseEmail(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"Ann@Example.com":                   "ann@example.com",
		"a+b@x.io":                          "a+b@x.io",
		"":                                  "",
		"ann":                               "",
		"Ann <ann@example.com>":             "",
		" ann@example.com":                  "",
		"a@b@c":                             "",
		"a\x00@example.com":                 "",
		strings.Repeat("a", 250) + "@a.com": "",
		"ann@example.com, bob@example.com":  "",
		"ann@example.com\r\nBcc: eve@x.io":  "",
		"\"ann\r\nBcc: eve\"@example.com":   "",
		`"ann bcc: x"@example.com`:          "",
	} {
		got, err := account.ParseEmail(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParseEmail(%q) = %q, %v; want %q", given, got, err, want)
		}
	}
}

// A new address is in ASCII and not under .invalid.
func TestParseNewEmail(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"Kate@xn--bcher-kva.example": "kate@xn--bcher-kva.example",
		"\u212aate@example.com":      "",
		"k\u0430te@example.com":      "",
		"kate@ex\u0430mple.com":      "",
		"kate@b\u00fccher.example":   "",
		"kate\u200b@example.com":     "",
		"kate":                       "",
		"kate@b.invalid":             "",
	} {
		got, err := account.ParseNewEmail("newEmail", given)
		var invalid *account.InvalidError
		if got != want || (err == nil) != (want != "") || err != nil && (!errors.As(err, &invalid) || invalid.Field != "newEmail") {
			t.Errorf("ParseNewEmail(%q) = %q, %v; want %q", given, got, err, want)
		}
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	passwords := account.NewPasswords(account.OWASP)
	hash, err := passwords.Hash(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("Hash = %q, %v", hash, err)
	}
	for _, c := range []struct {
		password, hash string
		want           bool
	}{
		{"correct horse", hash, true},
		{"correct horse ", hash, false},
		{"", hash, false},
		{"no account has this password", "", false},
	} {
		got, err := passwords.Matches(t.Context(), c.password, c.hash)
		if got != c.want || err != nil {
			t.Errorf("Matches(%q, %q) = %t, %v; want %t", c.password, c.hash, got, err, c.want)
		}
	}
	for _, password := range []string{"", "1234567", strings.Repeat("ü", 129)} {
		var invalid *account.InvalidError
		if _, err := passwords.Hash(t.Context(), password); !errors.As(err, &invalid) || invalid.Field != "password" {
			t.Errorf("Hash(%q): %v, want an invalid password", password, err)
		}
	}
}

// A flood of passwords waits for its turn instead of taking the memory: each hash takes 19 MiB.
func TestPasswords_Flood(t *testing.T) {
	t.Parallel()
	passwords := account.NewPasswords(account.OWASP)
	const flood = 40
	inUse := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := inUse() // the tests beside this one have memory of their own
	var peak atomic.Uint64
	var hashing sync.WaitGroup
	for range flood {
		hashing.Go(func() {
			if _, err := passwords.Matches(t.Context(), "a wrong password", ""); err != nil {
				t.Error(err)
			}
			peak.Store(max(peak.Load(), inUse())) // while the others are under way
		})
	}
	hashing.Wait()
	if got := peak.Load(); got > before+flood*19<<20/2 {
		t.Errorf("%d MiB in use", got>>20)
	}
}

// A caller that stops waiting for a slot gets no hash and takes no slot.
func TestPasswords_Canceled(t *testing.T) {
	t.Parallel()
	passwords := account.NewPasswords(account.OWASP)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	refused := 0
	for range 50 {
		if _, err := passwords.Hash(gone, "correct horse"); err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			refused++
		}
	}
	if refused == 0 {
		t.Error("no caller that had gone was turned away")
	}
	if _, err := passwords.Hash(t.Context(), "correct horse"); err != nil {
		t.Error(err)
	}
}

func TestNewKey(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	owner := uuid.New()
	key, text, err := account.NewKey(owner, account.KeyRequest{Name: " my key ", ExpiresIn: time.Hour}, now)
	if err != nil {
		t.Fatal(err)
	}
	if key.Name != "my key" || key.AccountID != owner || key.Environment != network.Test || !key.Enabled ||
		key.Hash != text.Hash() || key.Start != text.Start() || !key.ExpiresAt.Equal(now.Add(time.Hour)) ||
		key.Limit != (account.Limit{Requests: 50, Period: time.Minute}) {
		t.Errorf("key %+v", key)
	}
	for field, request := range map[string]account.KeyRequest{
		"name":        {Name: "  "},
		"environment": {Name: "a", Environment: "prod"},
	} {
		var invalid *account.InvalidError
		if _, _, err := account.NewKey(owner, request, now); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("NewKey(%+v): %v, want an invalid %s", request, err, field)
		}
	}
	for _, name := range []string{strings.Repeat("ü", 65), "a\x00b"} {
		if _, _, err := account.NewKey(owner, account.KeyRequest{Name: name}, now); err == nil {
			t.Errorf("NewKey took the name %q", name)
		}
	}
}

func TestParseExpiresIn(t *testing.T) {
	t.Parallel()
	for seconds, ok := range map[int64]bool{1: true, 315360000: true, 0: false, -1: false, 315360001: false, 1 << 62: false} {
		if _, err := account.ParseExpiresIn(seconds); (err == nil) != ok {
			t.Errorf("ParseExpiresIn(%d): %v, want ok = %t", seconds, err, ok)
		}
	}
}

func TestNewSession(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	session, token, err := account.NewSession(uuid.New(), "192.0.2.1", "a\x00b\n"+strings.Repeat("ü", 300), now)
	if err != nil || session.TokenHash != account.HashToken(token) || len(token) < 52 {
		t.Fatalf("%+v, %q, %v", session, token, err)
	}
	if want := "ab" + strings.Repeat("ü", 254); session.UserAgent != want {
		t.Errorf("user agent %q", session.UserAgent)
	}
	if _, other, _ := account.NewSession(uuid.New(), "", "", now); other == token {
		t.Error("two sessions have one token")
	}
}
