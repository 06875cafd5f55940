package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/identities"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// Shop is a shared account in which every session route has something to do.
type Shop struct {
	// Session is that of Owner, acting on Account, and Other another one of Owner.
	Session, Other *account.Session
	Owner, Account *account.Account
	// Member is another owner.
	Member uuid.UUID
	// Live is a live key that can get more in every way: it is disabled, expires, and has one scope and one network. Test is an
	// unrestricted test key.
	Live, Test *account.Key
	// Webhook is a disabled live endpoint with a filter.
	Webhook *webhooks.Endpoint
	// Invitation is an open one to Account. Token is that of an invitation of Owner to Member's account.
	Invitation uuid.UUID
	Token      string
	// Wallet is linked to Owner.
	Wallet account.Identity
}

// NewShop makes a shop whose owner has this hash of a password.
func NewShop(t *testing.T, store *rooms.Rooms, hash string) *Shop {
	t.Helper()
	name := uuid.NewString()
	s := &Shop{Owner: SignUp(t, store, name+"@example.com"), Member: SignUp(t, store, name+"@example.org").ID, Token: name}
	s.Owner.PasswordHash, s.Owner.EmailVerifiedAt = hash, s.Owner.CreatedAt
	Exec(t, store, `UPDATE accounts SET password_hash = $1, email_verified_at = created_at WHERE id = $2`, hash, s.Owner.ID)
	s.Session, s.Other = InsertSession(t, store, s.Owner.ID), InsertSession(t, store, s.Owner.ID)
	var err error
	s.Account, err = account.NewSharedAccount("Shop", Now())
	Must(t, err)
	owner := account.Member{AccountID: s.Account.ID, PersonID: s.Member, Role: account.RoleOwner, CreatedAt: Now()}
	Must(t, As(t.Context(), store, s.Session, s.Owner.ID, func(ctx context.Context, tx identities.Tx, by identities.Rights) error {
		if err := tx.InsertSharedAccount(ctx, by, s.Account, s.Owner.ID); err != nil {
			return err
		}
		if err := tx.InsertMember(ctx, tx.OperatorRights(), owner); err != nil {
			return err
		}
		return tx.SetActing(ctx, by, s.Account.ID)
	}))
	s.Session.Acting = &account.Membership{Account: s.Account, Role: account.RoleOwner}
	networks, err := account.ParseNetworks([]string{"203.0.113.7"})
	Must(t, err)
	s.Live = InsertKeyOf(t, store, s.Account.ID, account.KeyRequest{
		Environment: network.Live, ExpiresIn: time.Hour, Scopes: apikey.ScopeOf("webhooks"), Networks: networks,
	})
	Exec(t, store, `UPDATE api_keys SET enabled = false WHERE id = $1`, s.Live.ID)
	s.Test = InsertKey(t, store, s.Account.ID)
	s.insertWebhook(t, store)
	s.invite(t, store)
	s.Wallet, err = account.NewWalletIdentity("0x" + hexDigits(40))
	Must(t, err)
	Exec(t, store, `INSERT INTO identities (issuer, subject, account_id, created_at) VALUES ($1, $2, $3, now())`, s.Wallet.Issuer, s.Wallet.Subject, s.Owner.ID)
	return s
}

// hexDigits are n random digits.
func hexDigits(n int) string {
	digits := ""
	for len(digits) < n {
		digits += uuid.NewString()[:8]
	}
	return digits[:n]
}

func (s *Shop) insertWebhook(t *testing.T, store *rooms.Rooms) {
	t.Helper()
	owner := feed.Owner{AccountID: s.Account.ID, Environment: network.Live}
	e, _, err := WebhookRules(t, make([]byte, 32), nil).New(owner, webhooks.Draft{URL: "https://example.com", Types: []string{"transfer.filled"}}, Now())
	Must(t, err)
	e.Enabled, e.DisabledReason = false, webhooks.DisabledByOwner
	Must(t, store.Webhooks.InsertWebhook(t.Context(), identities.OfOperator, e, AuditEntry(s.Account.ID, account.WebhookCreated), [32]byte{}))
	s.Webhook = e
}

// invite makes the two invitations.
func (s *Shop) invite(t *testing.T, store *rooms.Rooms) {
	t.Helper()
	here, err := account.NewInvitation(s.Account.ID, s.Owner.ID, s.Token+"@example.net", account.RoleViewer, Now())
	Must(t, err)
	there, err := account.NewInvitation(s.Member, s.Member, s.Owner.Email, account.RoleDeveloper, Now())
	Must(t, err)
	s.Invitation = here.ID
	hash := account.HashToken(s.Token)
	Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identities.Tx) error {
		if err := tx.ReplaceInvitation(ctx, tx.OperatorRights(), here, nil); err != nil {
			return err
		}
		return tx.ReplaceInvitation(ctx, tx.OperatorRights(), there, &hash)
	}))
}
