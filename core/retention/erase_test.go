package retention_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/mail"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
)

// tables are all of the database but the migrator's.
func tables(t *testing.T, store *rooms.Rooms, where string) []string {
	t.Helper()
	return strings.Fields(pgtest.LookUp[string](t, store, `SELECT coalesce(string_agg(relname, ' ' ORDER BY relname), '') FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname NOT LIKE 'bun%' AND `+where))
}

// found is where a text stands in the database: the tables with a row that has it in any column, as text or in bytes.
func found(t *testing.T, store *rooms.Rooms, text string) []string {
	t.Helper()
	var in []string
	for _, table := range tables(t, store, "true") {
		n := pgtest.LookUp[int](t, store, fmt.Sprintf(`SELECT count(*) FROM %s AS r WHERE strpos(lower(r::text), lower($1)) > 0
			OR strpos(r::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0`, table), text)
		if n > 0 {
			in = append(in, table)
		}
	}
	return in
}

// person is somebody with an account, and what the database knows of her.
type person struct {
	account *account.Account
	traces  []string
}

// insertPerson leaves traces of a person in every table that may hold some.
func insertPerson(t *testing.T, store *rooms.Rooms, known *registry.Snapshot, name string) person {
	t.Helper()
	p := person{traces: []string{
		name + "@example.com", strings.ToUpper(name) + " Lee", name + "s laptop", name + "-Browser/1.0",
		fmt.Sprintf("203.0.113.%d", 100+len(name)), fmt.Sprintf("0x%040x", len(name)), "hash of " + name,
	}}
	actor := account.Actor{IPAddress: p.traces[4], UserAgent: p.traces[3]}
	entry := func(of uuid.UUID, action account.Action) account.AuditEntry {
		e, err := account.NewAuditEntry(of, actor, action, pgtest.Now())
		pgtest.Must(t, err)
		return e
	}
	var err error
	p.account, err = account.New(p.traces[1], p.traces[0], p.traces[6], pgtest.Now())
	pgtest.Must(t, err)
	linked := account.Identity{Issuer: account.WalletIssuer, Subject: p.traces[5]}
	pgtest.Must(t, store.Identities.InsertAccountWithIdentity(t.Context(), p.account, linked, entry(p.account.ID, account.SignedUp)))
	session, _, err := account.NewSession(p.account.ID, actor.IPAddress, actor.UserAgent, pgtest.Now())
	pgtest.Must(t, err)
	pgtest.Must(t, store.Identities.InsertSession(t.Context(), session, p.account, entry(p.account.ID, account.SignedIn)))
	k := pgtest.NewKey(t, p.account.ID, account.KeyRequest{Name: p.traces[2]})
	pgtest.Must(t, pgtest.AddKey(t.Context(), store, k, entry(p.account.ID, account.KeyCreated).OfKey(k, "named "+p.traces[2])))
	by := entry(p.account.ID, account.WebhookUpdated).ByKey(k.ID).OfWebhook(uuid.New(), "description for "+p.traces[0])
	for range 2 { // the second is the entry's last detail
		pgtest.Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error { return tx.Audit(ctx, by) }))
	}
	body := strings.Replace(pgtest.SwapBody, `"inv-42"`, `"for `+p.traces[0]+`","labels":{"for":"`+p.traces[0]+`"}`, 1)
	_, err = store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, p.account.ID, body), pgtest.Idempotent(t, p.traces[0]+" 1", body))
	pgtest.Must(t, err)
	pgtest.Exec(t, store, `INSERT INTO transfer_updates (account_id, transfer_id, sequence, reference, labels)
		SELECT account_id, id, 2, reference, labels FROM transfers WHERE account_id = $1`, p.account.ID)
	pgtest.Exec(t, store, `INSERT INTO batches (account_id, id, key_id, environment, idempotency_key, count, created_at)
		VALUES ($1, gen_random_uuid(), gen_random_uuid(), 'test', $2, 1, now())`, p.account.ID, "batch of "+p.traces[0])
	pgtest.InsertQuote(t, store, known, p.account.ID, func(q *quote.Quote) { q.Source.Account.Address = p.traces[5] })
	pgtest.Must(t, store.Mail.Insert(t.Context(), mail.Draft{Kind: mail.KindResetPassword, Recipient: p.traces[0]}))
	pgtest.Must(t, store.Identities.DeleteAccountByID(t.Context(), access.OfOperator, p.account.ID, "", actor, pgtest.Now()))
	link := identity.Link{Purpose: account.ChangeEmail, AccountID: p.account.ID, Email: p.traces[0], NewEmail: "new-" + p.traces[0]}
	pgtest.Must(t, store.Identities.InsertLink(t.Context(), account.HashToken(p.traces[0]), link, pgtest.Now()))
	pgtest.Must(t, store.Mail.Insert(t.Context(), mail.Draft{
		Kind: mail.KindChangeEmail, Recipient: link.NewEmail, AccountID: p.account.ID, NewEmail: link.NewEmail, Callback: "/" + p.traces[0],
	}))
	pgtest.Must(t, store.Identities.InsertResetToken(t.Context(), p.account, account.HashToken(p.traces[0]), pgtest.Now(), nil))
	// In the account of somebody else stay an action of the person and an invitation of the address.
	friend := pgtest.SignUp(t, store, fmt.Sprintf("friend-%d@example.net", len(name)))
	there := entry(friend.ID, account.KeyDeleted).OfKey(pgtest.NewKey(t, friend.ID, account.KeyRequest{}), "")
	there.Actor.PersonID = p.account.ID
	invitation, err := account.NewInvitation(friend.ID, friend.ID, p.traces[0], account.RoleViewer, pgtest.Now())
	pgtest.Must(t, err)
	pgtest.Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
		return errors.Join(tx.Audit(ctx, there), tx.ReplaceInvitation(ctx, tx.OperatorRights(), invitation, nil))
	}))
	return p
}

func TestEraseAccount(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	ann, bartholomew := insertPerson(t, store, known, "ann"), insertPerson(t, store, known, "bartholomew")
	intent := func() *transfer.Intent {
		t.Helper()
		all := pgtest.List(t, store, ann.account.ID, intents.TransferFilter{})
		if len(all) != 1 {
			t.Fatalf("%d intents", len(all))
		}
		i, err := store.Intents.Transfer(t.Context(), ann.account.ID, all[0].ID)
		pgtest.Must(t, err)
		return i
	}
	pgtest.AssignPositions(t, store)
	before := intent()
	for _, p := range []person{ann, bartholomew} {
		for _, trace := range p.traces[:5] {
			if len(found(t, store, trace)) == 0 {
				t.Errorf("the database has no %q before the erasure", trace)
			}
		}
	}
	erased, err := store.Retention.EraseAccount(t.Context(), ann.account.ID, pgtest.Now())
	if diff := cmp.Diff(map[string]int64{"accounts": 1, "api_keys": 1, "audit_log": 6, "batches": 1, "feed": 1, "invitations": 1, "link_tokens": 1, "mails": 2, "quotes": 1, "reset_tokens": 1, "transfer_updates": 1, "transfers": 3}, erased); diff != "" || err != nil {
		t.Errorf("erased %v (-want +got):\n%s", err, diff)
	}
	for _, trace := range ann.traces {
		if in := found(t, store, trace); len(in) > 0 {
			t.Errorf("%q is still in %q", trace, in)
		}
	}
	for _, trace := range bartholomew.traces[:5] {
		if len(found(t, store, trace)) == 0 {
			t.Errorf("%q was erased with another account", trace)
		}
	}
	// The intent itself stays, and the log of what was done.
	before.Reference, before.Labels = "", ""
	if diff := cmp.Diff(before, intent(), pgtest.Amounts); diff != "" {
		t.Errorf("the intent (-before +after):\n%s", diff)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM audit_log WHERE account_id = $1`, ann.account.ID); n != 5 {
		t.Errorf("%d entries of the audit log are left, want 5", n)
	}
	if erased, err = store.Retention.EraseAccount(t.Context(), ann.account.ID, pgtest.Now()); len(erased) != 0 || err != nil {
		t.Errorf("the second time erases %v, %v", erased, err)
	}
	// Sessions and identities are gone since the account ended, and an erasure that was cut short left the address.
	pgtest.Exec(t, store, `INSERT INTO identities (issuer, subject, account_id, created_at)
		VALUES ('eip155', $1, $2, now())`, ann.traces[5], ann.account.ID)
	pgtest.Exec(t, store, `INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, backup_eligible, backed_up, transports,
		aaguid, name, created_at)
		VALUES (gen_random_uuid(), $1, 'c', 'k', 0, false, false, '', gen_random_uuid(), '', now())`, ann.account.ID)
	pgtest.Exec(t, store, `INSERT INTO sign_in_challenges (hash, person_id, challenge, expires_at)
		VALUES (sha256('c'), $1, 'c', now())`, ann.account.ID)
	erased, err = store.Retention.EraseAccount(t.Context(), ann.account.ID, pgtest.Now())
	if erased["identities"] != 1 || erased["passkeys"] != 1 || erased["sign_in_challenges"] != 1 || err != nil {
		t.Errorf("what came later: %v, %v", erased, err)
	}
}

func TestEraseAccount_Refused(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	living := pgtest.SignUp(t, store, "ann@example.com")
	if _, err := store.Retention.EraseAccount(t.Context(), living.ID, pgtest.Now()); !errors.Is(err, account.ErrNotEnded) {
		t.Errorf("an account that lives: %v", err)
	}
	if _, err := store.Retention.EraseAccount(t.Context(), uuid.New(), pgtest.Now()); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("no account: %v", err)
	}
	if in := found(t, store, "ann@example.com"); !slices.Contains(in, "accounts") {
		t.Errorf("the address of a living account is in %q", in)
	}
}

// A table that comes to hold something of accounts must be thought of.
func TestEraseAccount_EveryTable(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	got := tables(t, store, `EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname IN ('account_id', 'person_id') AND NOT attisdropped)`)
	want := []string{"api_keys", "audit_log", "batches", "disputed_transactions", "events", "feed", "feed_pruned", "identities", "invitations", "key_usage", "link_tokens", "mails", "members", "passkeys", "quotes", "reset_tokens", "screening_hits", "sessions", "sign_in_challenges", "transactions", "transfer_updates", "transfers", "webhook_quotas", "webhook_requests", "webhooks"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tables with rows of accounts; see to it in erase.go (-known +there):\n%s", diff)
	}
}
