package clienttoken_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

const secret telemetry.Secret = "a secret of gateway and core, of 32 characters or more"

var claims = clienttoken.Claims{
	Key:        apikey.Hash{1, 2, 3},
	TransferID: uuid.MustParse("0199c0de-0000-7000-8000-00000000abcd"),
	Expires:    time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
}

func TestMinter(t *testing.T) {
	t.Parallel()
	token := clienttoken.NewMinter(secret).Mint(claims)
	if !regexp.MustCompile(`^ct_[A-Za-z0-9_-]{119}$`).MatchString(token) {
		t.Errorf("Mint: %q", token)
	}
	got, err := clienttoken.NewMinter(secret).Verify([]byte(token))
	if diff := cmp.Diff(claims, got); err != nil || diff != "" {
		t.Errorf("Verify: %v\n%s", err, diff)
	}
	if _, err := clienttoken.NewMinter("another secret").Verify([]byte(token)); !errors.Is(err, clienttoken.ErrForged) {
		t.Errorf("Verify with another secret: %v", err)
	}
}

// The format is what gateways and cores of different releases share.
func TestMinter_Format(t *testing.T) {
	t.Parallel()
	const want = "ct_AQECAwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAZnA3gAAcACAAAAAAACrzQAAAABrDWVAoUu9S9UV5xcAvajKL9zIKx16I2RYm38SJZtNUCUeEoM"
	if got := clienttoken.NewMinter(secret).Mint(claims); got != want {
		t.Errorf("Mint: %q, want %q", got, want)
	}
}

func TestMinter_Verify_Changed(t *testing.T) {
	t.Parallel()
	minter := clienttoken.NewMinter(secret)
	token := minter.Mint(claims)
	for at := len(clienttoken.Prefix); at < len(token); at++ {
		changed := []byte(token)
		changed[at] = map[bool]byte{true: 'B', false: 'A'}[changed[at] == 'A']
		if _, err := minter.Verify(changed); err == nil {
			t.Errorf("Verify accepts another character at %d", at)
		}
	}
	for _, text := range []string{
		"", clienttoken.Prefix, token[3:], "CT_" + token[3:], token + "A", token[:len(token)-1], token + "=", token + "\n",
		token[:len(token)-1] + "\n", token[:20] + "\r\n" + token[22:], apikey.New(network.Test).Reveal(), strings.Repeat("x", 4096),
	} {
		if _, err := minter.Verify([]byte(text)); !errors.Is(err, clienttoken.ErrMalformed) {
			t.Errorf("Verify(%q): %v", text, err)
		}
	}
}

func TestClaims_Expired(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]bool{-time.Nanosecond: false, 0: true, time.Hour: true} {
		if got := claims.Expired(claims.Expires.Add(after)); got != want {
			t.Errorf("Expired %v after the expiry: %t", after, got)
		}
	}
}

func TestClaims_IsFor(t *testing.T) {
	t.Parallel()
	id := claims.TransferID.String()
	for text, want := range map[string]bool{
		id: true, strings.ToUpper(id): false, "": false, "{" + id + "}": false, strings.ReplaceAll(id, "-", ""): false, uuid.NewString(): false,
	} {
		if got := claims.IsFor([]byte(text)); got != want {
			t.Errorf("IsFor(%q) = %t", text, got)
		}
	}
}

func TestMinter_Redacted(t *testing.T) {
	t.Parallel()
	minter := clienttoken.NewMinter(secret)
	if shown := fmt.Sprintf("%v %+v %#v %s", minter, minter, minter, minter); strings.ReplaceAll(shown, "[redacted]", "") != "   " {
		t.Errorf("the minter shows as %q", shown)
	}
}

func FuzzMinter_Verify(f *testing.F) {
	minter := clienttoken.NewMinter(secret)
	f.Add(minter.Mint(claims))
	f.Add("ct_")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := minter.Verify([]byte(text))
		if err == nil && minter.Mint(got) != text {
			t.Fatalf("Verify(%q) = %+v, whose token is %q", text, got, minter.Mint(got))
		}
	})
}

func BenchmarkMinter_Verify(b *testing.B) {
	minter := clienttoken.NewMinter(secret)
	token := []byte(minter.Mint(claims))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := minter.Verify(token); err != nil {
			b.Fatal(err)
		}
	}
}
