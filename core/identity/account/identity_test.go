package account_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/caip"
)

const (
	wallet      = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	lowerWallet = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
	issuer      = "https://id.example.com"
)

func TestNewWalletAccount(t *testing.T) {
	t.Parallel()
	for _, address := range []string{wallet, lowerWallet} {
		identity, err := account.NewWalletIdentity(address)
		if err != nil {
			t.Fatal(err)
		}
		got, err := account.NewWalletAccount(identity, noon)
		if err != nil {
			t.Fatal(err)
		}
		want := &account.Account{
			ID: got.ID, Name: wallet, Email: lowerWallet + "@eip155.invalid", Limit: account.DefaultAccountLimit, CreatedAt: noon, UpdatedAt: noon,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("account differs (-want +got):\n%s", diff)
		}
		if want := (account.Identity{Issuer: account.WalletIssuer, Subject: lowerWallet}); identity != want {
			t.Errorf("identity %+v, want %+v", identity, want)
		}
	}
	for _, address := range []string{"", "0x", "vitalik.eth", wallet[2:], wallet + "0", strings.ToUpper(wallet), strings.Replace(wallet, "F", "f", 1)} {
		var invalid *account.InvalidError
		if _, err := account.NewWalletIdentity(address); !errors.As(err, &invalid) || invalid.Field != "walletAddress" {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestNewOIDCAccount(t *testing.T) {
	t.Parallel()
	// printf 'https://id.example.com\0user-7' | sha256sum
	const nobody = "2c428f03b4e1029e1dc3c6cbbce1d025@oidc.invalid"
	for _, c := range []struct{ name, email, wantName, wantEmail string }{
		{"Ann", "Ann@Example.com", "Ann", "ann@example.com"},
		{"", "ann@example.com", "ann@example.com", "ann@example.com"},
		{" Ann\n\x00", "", "Ann", nobody},
		{"", "", nobody, nobody},
		{strings.Repeat("ü", 200), "", strings.Repeat("ü", 128), nobody},
	} {
		got, identity, err := account.NewOIDCAccount(issuer, "user-7", c.name, c.email, noon)
		if err != nil {
			t.Fatal(err)
		}
		want := &account.Account{ID: got.ID, Name: c.wantName, Email: c.wantEmail, Limit: account.DefaultAccountLimit, CreatedAt: noon, UpdatedAt: noon}
		if c.email != "" {
			want.EmailVerifiedAt = noon // by the issuer
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("account of %q differs (-want +got):\n%s", c.name, diff)
		}
		if want := (account.Identity{Issuer: issuer, Subject: "user-7"}); identity != want {
			t.Errorf("identity %+v, want %+v", identity, want)
		}
	}
	for _, c := range []struct{ issuer, subject, email, field string }{
		{account.WalletIssuer, lowerWallet, "", "issuer"},
		{"", "user-7", "", "issuer"},
		{"https://" + strings.Repeat("i", 2048), "user-7", "", "issuer"},
		{issuer, "", "", "subject"},
		{issuer, strings.Repeat("s", 256), "", "subject"},
		{issuer, "a\x00b", "", "subject"},
		{issuer, "user-7", "not an address", "email"},
		{issuer, "user-7", lowerWallet + "@eip155.invalid", "email"},
	} {
		var invalid *account.InvalidError
		_, _, err := account.NewOIDCAccount(c.issuer, c.subject, "", c.email, noon)
		if !errors.As(err, &invalid) || invalid.Field != c.field {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// An address under .invalid is that of an account without one; nobody may sign up with it.
func TestNew_InvalidDomains(t *testing.T) {
	t.Parallel()
	for email, ok := range map[string]bool{
		"a@eip155.invalid":       false,
		"a@EIP155.INVALID":       false,
		"a@invalid":              false,
		"a@b.oidc.invalid":       false,
		`"x@y.com"@oidc.invalid`: false,
		"a@invalid.com":          true,
		"a@notinvalid":           true,
		"invalid@example.com":    true,
	} {
		_, err := account.New("", email, "hash", noon)
		var invalid *account.InvalidError
		if ok != (err == nil) || !ok && (!errors.As(err, &invalid) || invalid.Field != "email") {
			t.Errorf("New(%q): %v, want ok = %t", email, err, ok)
		}
	}
	if _, err := account.New("a\xff", "a@example.com", "hash", noon); err == nil {
		t.Error("New took a name that is not UTF-8")
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	smart, err := account.NewSmartAccountIdentity(caip.EIP155Chain(8453), wallet)
	if err != nil {
		t.Fatal(err)
	}
	if want := (account.Identity{Issuer: "eip155:8453", Subject: lowerWallet}); smart != want {
		t.Errorf("identity %+v, want %+v", smart, want)
	}
	type shown struct {
		Chain                        string
		Wallet                       bool
		Address, Placeholder, String string
	}
	for identity, want := range map[account.Identity]shown{
		{Issuer: account.WalletIssuer, Subject: lowerWallet}: {"", true, wallet, lowerWallet + "@eip155.invalid", "wallet " + wallet},
		smart:                               {"eip155:8453", true, wallet, lowerWallet + "@8453.eip155.invalid", "smart account " + wallet + " on eip155:8453"},
		{Issuer: issuer, Subject: "user-7"}: {"", false, "", "2c428f03b4e1029e1dc3c6cbbce1d025@oidc.invalid", "user-7 at " + issuer},
	} {
		chain, isWallet := identity.IsWallet()
		got := shown{chain.String(), isWallet, identity.Address(), identity.Placeholder(), identity.String()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", identity, diff)
		}
	}
}
