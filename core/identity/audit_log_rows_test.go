package identity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
)

// mutation is one call that the audit log tells of, and the entry that it must write.
type mutation struct {
	want account.AuditEntry
	do   func(context.Context, *rooms.Rooms) error
}

func asOperator(ctx context.Context, s *rooms.Rooms, do func(identity.Tx) error) error {
	return s.Identities.InTx(ctx, postgres.NoTurn, func(_ context.Context, tx identity.Tx) error { return do(tx) })
}

// mutations is every such call, in an order in which each succeeds.
func mutations(t *testing.T, at time.Time) []mutation {
	t.Helper()
	type ctx = context.Context
	type db = *rooms.Rooms
	ann, err := account.New("", "ann@example.com", "hash", at)
	if err != nil {
		t.Fatal(err)
	}
	wallet, linked := newWalletAccount(t)
	session := func() *account.Session {
		s, _, err := account.NewSession(ann.ID, "", "", at)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two, three, four, key := session(), session(), session(), session(), pgtest.NewKey(t, ann.ID, account.KeyRequest{Name: "<b>"})
	entry := func(a *account.Account, by account.Actor, action account.Action) account.AuditEntry {
		return account.AuditEntry{ID: uuid.Must(uuid.NewV7()), AccountID: a.ID, OccurredAt: at, Actor: by, Action: action}
	}
	prompt := account.Actor{Operator: true}
	signedUp, signedIn := entry(ann, pgtest.Browser, account.SignedUp), entry(ann, pgtest.Browser, account.SignedIn)
	signedInAgain, walletSignedUp := entry(ann, pgtest.Browser, account.SignedIn), entry(wallet, pgtest.Browser, account.SignedUp)
	oneRevoked, allRevoked := entry(ann, pgtest.Browser, account.SessionsRevoked), entry(ann, pgtest.Browser, account.SessionsRevoked)
	signedInLast, passwordChanged := entry(ann, pgtest.Browser, account.SignedIn), entry(ann, pgtest.Browser, account.PasswordChanged)
	linkMade, reset, token := entry(ann, account.Actor{Operator: true}, account.ResetLinkMade), entry(ann, pgtest.Browser, account.PasswordReset), account.HashToken("a token")
	changeRequested := entry(ann, pgtest.Browser, account.EmailChangeRequested)
	created := entry(ann, pgtest.Browser, account.KeyCreated).OfKey(key, "test key")
	updated := entry(ann, pgtest.Browser, account.KeyUpdated).OfKey(key, "disabled")
	rotated := entry(ann, pgtest.Browser, account.KeyRotated).OfKey(key, "an hour of grace")
	deletedKey := entry(ann, pgtest.Browser, account.KeyDeleted).OfKey(key, "")
	return []mutation{
		{signedUp, func(ctx ctx, s db) error { return s.Identities.InsertAccount(ctx, ann, signedUp) }},
		{signedIn, func(ctx ctx, s db) error { return s.Identities.InsertSession(ctx, one, ann, signedIn) }},
		{signedInAgain, func(ctx ctx, s db) error { return s.Identities.InsertSession(ctx, two, ann, signedInAgain) }},
		{oneRevoked, func(ctx ctx, s db) error {
			return asOperator(ctx, s, func(tx identity.Tx) error {
				return tx.DeleteSessionByID(ctx, tx.OperatorRights(), ann.ID, two.ID, oneRevoked)
			})
		}},
		{allRevoked, func(ctx ctx, s db) error {
			return asOperator(ctx, s, func(tx identity.Tx) error {
				_, err := tx.DeleteSessionsExcept(ctx, tx.OperatorRights(), ann.ID, uuid.Nil, allRevoked)
				return err
			})
		}},
		{signedInLast, func(ctx ctx, s db) error { return s.Identities.InsertSession(ctx, three, ann, signedInLast) }},
		{passwordChanged, func(ctx ctx, s db) error {
			return asOperator(ctx, s, func(tx identity.Tx) error {
				return tx.ChangePassword(ctx, tx.OperatorRights(), ann, "another", four, passwordChanged)
			})
		}},
		{linkMade, func(ctx ctx, s db) error {
			return s.Identities.InsertResetToken(ctx, ann, token, at.Add(time.Hour), &linkMade)
		}},
		{reset, func(ctx ctx, s db) error {
			_, err := s.Identities.ResetPassword(ctx, token, "another", false, reset)
			return err
		}},
		{changeRequested, func(ctx ctx, s db) error {
			return asOperator(ctx, s, func(tx identity.Tx) error {
				return tx.QueueMailWithEntry(ctx, tx.OperatorRights(), mail.Draft{Kind: mail.KindChangeEmail, Recipient: "new@example.com"}, changeRequested)
			})
		}},
		{created, func(ctx ctx, s db) error { return pgtest.AddKey(ctx, s, key, created) }},
		{updated, func(ctx ctx, s db) error {
			return s.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
				k, err := tx.LockKey(ctx, ann.ID, key.ID)
				if err != nil {
					return err
				}
				k.Enabled = false
				return errors.Join(tx.UpdateKey(ctx, tx.OperatorRights(), k), tx.Audit(ctx, updated))
			})
		}},
		{rotated, func(ctx ctx, s db) error {
			return s.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
				k, err := tx.LockKey(ctx, ann.ID, key.ID)
				if err != nil {
					return err
				}
				next, _, err := k.Rotate(time.Hour, at)
				if err != nil {
					return err
				}
				return errors.Join(tx.ReplaceKey(ctx, tx.OperatorRights(), k, next), tx.Audit(ctx, rotated))
			})
		}},
		{
			deletedKey,
			func(ctx ctx, s db) error {
				return s.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
					return errors.Join(tx.DeleteKey(ctx, tx.OperatorRights(), key, at), tx.Audit(ctx, deletedKey))
				})
			},
		},
		{
			entry(ann, prompt, account.PasswordReset),
			func(ctx ctx, s db) error { return s.Identities.SetPassword(ctx, ann.Email, "other", prompt, at) },
		},
		{
			entry(ann, prompt, account.EmailVerified),
			func(ctx ctx, s db) error { return s.Identities.VerifyEmail(ctx, ann.Email, prompt, at) },
		},
		{
			entry(ann, prompt, account.AccountDisabled),
			func(ctx ctx, s db) error { return s.Identities.DisableAccount(ctx, ann.Email, prompt, at) },
		},
		{
			entry(ann, prompt, account.AccountEnabled),
			func(ctx ctx, s db) error { return s.Identities.EnableAccount(ctx, ann.Email, prompt, at) },
		},
		{
			entry(ann, prompt, account.AccountDeleted),
			func(ctx ctx, s db) error { return s.Identities.DeleteAccount(ctx, ann.Email, prompt, at) },
		},
		{walletSignedUp, func(ctx ctx, s db) error {
			return s.Identities.InsertAccountWithIdentity(ctx, wallet, linked, walletSignedUp)
		}},
		{
			entry(wallet, pgtest.Browser, account.AccountDeleted),
			func(ctx ctx, s db) error {
				return s.Identities.DeleteAccountByID(ctx, access.OfOperator, wallet.ID, "", pgtest.Browser, at)
			},
		},
	}
}

func TestAudit_EveryMutation(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	pgtest.Exec(t, store, `CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room'; END $$`)
	contents := func() string {
		return pgtest.LookUp[string](t, store, `SELECT concat(
			(SELECT jsonb_agg(a ORDER BY id) FROM accounts a), (SELECT jsonb_agg(s ORDER BY id) FROM sessions s),
			(SELECT jsonb_agg(i ORDER BY issuer, subject) FROM identities i), (SELECT jsonb_agg(m ORDER BY id) FROM mails m), (SELECT jsonb_agg(k ORDER BY id) FROM api_keys k),
			(SELECT jsonb_agg(r ORDER BY hash) FROM reset_tokens r))`)
	}
	want := map[uuid.UUID][]account.AuditEntry{}
	for n, m := range mutations(t, pgtest.Now()) {
		// Where the entry cannot be written, nothing is: both are one transaction.
		pgtest.Exec(t, store, `CREATE TRIGGER no_room BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION no_room()`)
		before := contents()
		if err := m.do(t.Context(), store); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%d %s without an audit log: %v", n, m.want.Action, err)
		}
		if diff := cmp.Diff(before, contents()); diff != "" {
			t.Errorf("%d %s happened without its entry (-before +after):\n%s", n, m.want.Action, diff)
		}
		pgtest.Exec(t, store, `DROP TRIGGER no_room ON audit_log`)
		if err := m.do(t.Context(), store); err != nil {
			t.Fatalf("%d %s: %v", n, m.want.Action, err)
		}
		if contents() == before {
			t.Errorf("%d %s changed nothing", n, m.want.Action)
		}
		of := m.want.AccountID
		want[of] = append([]account.AuditEntry{m.want}, want[of]...)
		got, _, err := store.Identities.AuditLog(t.Context(), of, access.AuditQuery{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutIDs(want[of]), withoutIDs(got)); diff != "" {
			t.Fatalf("after %d %s the audit log differs (-want +got):\n%s", n, m.want.Action, diff)
		}
	}
}

func withoutIDs(entries []account.AuditEntry) []account.AuditEntry {
	bare := append([]account.AuditEntry{}, entries...)
	for i := range bare {
		bare[i].ID, bare[i].PersonName, bare[i].PersonEmail = uuid.Nil, "", ""
	}
	return bare
}

func TestAudit_RefusedChanges(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	key := pgtest.InsertKey(t, store, ann.ID)
	twin, err := account.New("", ann.Email, "hash", pgtest.Now())
	if err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("no")
	entries := func() int { return pgtest.LookUp[int](t, store, `SELECT count(*) FROM audit_log`) }
	before := entries()
	_, updated := pgtest.UpdateKey(t.Context(), store, ann.ID, key.ID, func(k *account.Key) error {
		return refusal
	})
	for what, err := range map[string]error{
		"an address that is taken": store.Identities.InsertAccount(t.Context(), twin, pgtest.AuditEntry(twin.ID, account.SignedUp)),
		"an unknown key":           pgtest.DeleteKey(t.Context(), store, ann.ID, uuid.New()),
		"an unknown session": asOperator(t.Context(), store, func(tx identity.Tx) error {
			return tx.DeleteSessionByID(t.Context(), tx.OperatorRights(), ann.ID, uuid.New(), pgtest.AuditEntry(ann.ID, account.SessionsRevoked))
		}),
		"an unknown account":       store.Identities.SetPassword(t.Context(), "nobody@example.com", "hash", pgtest.Browser, pgtest.Now()),
		"a change that is refused": updated,
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if after := entries(); after != before {
		t.Errorf("%d entries about nothing", after-before)
	}
}

func TestAuditLog_Pages(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	for range 6 {
		pgtest.InsertKey(t, store, ann.ID)
		pgtest.InsertKey(t, store, bob.ID)
	}
	all, _, err := store.Identities.AuditLog(t.Context(), ann.ID, access.AuditQuery{Limit: 100})
	if err != nil || len(all) != 7 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	paged, before := []account.AuditEntry{}, uuid.Nil
	for range 3 {
		page, _, err := store.Identities.AuditLog(t.Context(), ann.ID, access.AuditQuery{Before: before, Limit: 3})
		if err != nil || len(page) == 0 {
			t.Fatalf("%d entries on a page, %v", len(page), err)
		}
		paged, before = append(paged, page...), page[len(page)-1].ID
	}
	if diff := cmp.Diff(all, paged); diff != "" {
		t.Errorf("pages differ from the whole (-whole +pages):\n%s", diff)
	}
	if none, _, err := store.Identities.AuditLog(t.Context(), ann.ID, access.AuditQuery{Before: before, Limit: 3}); len(none) != 0 || err != nil {
		t.Errorf("past the end: %d entries, %v", len(none), err)
	}
}

// A page has what matches, and leads on to the next one.
func TestAuditLog_Filtered(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	for range 3 {
		pgtest.InsertKey(t, store, ann.ID)
	}
	e, _ := pgtest.InsertWebhook(t, store, pgtest.WebhookRules(t, make([]byte, 32), nil), ann)
	pgtest.Must(t, store.Webhooks.DeleteWebhook(t.Context(), access.OfOperator, e.Owner(), e.ID, pgtest.AuditEntry(ann.ID, account.WebhookDeleted)))
	now := pgtest.Now()
	for name, c := range map[string]struct {
		query access.AuditQuery
		want  int
	}{
		"all":             {access.AuditQuery{}, 6},
		"an action":       {access.AuditQuery{Action: account.KeyCreated}, 3},
		"the holder":      {access.AuditQuery{PersonID: ann.ID}, 6},
		"somebody else":   {access.AuditQuery{PersonID: uuid.New()}, 0},
		"an operator":     {access.AuditQuery{Operator: true}, 0},
		"since yesterday": {access.AuditQuery{Since: now.Add(-24 * time.Hour), Until: now.Add(time.Hour)}, 6},
		"before today":    {access.AuditQuery{Until: now.Add(-24 * time.Hour)}, 0},
		"from tomorrow":   {access.AuditQuery{Since: now.Add(24 * time.Hour), Action: account.KeyCreated}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := 0
			for c.query.Limit = 2; ; {
				page, next, err := store.Identities.AuditLog(t.Context(), ann.ID, c.query)
				pgtest.Must(t, err)
				found += len(page)
				if next == uuid.Nil {
					break
				}
				c.query.Before = next
			}
			if found != c.want {
				t.Errorf("%d entries, want %d", found, c.want)
			}
		})
	}
}

// An action that a key took names the key.
func TestAuditLog_ByKey(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	owner := pgtest.SignUp(t, store, "ann@example.com")
	key := pgtest.InsertKey(t, store, owner.ID)
	e, _ := pgtest.InsertWebhook(t, store, pgtest.WebhookRules(t, make([]byte, 32), nil), owner)
	if err := store.Webhooks.DeleteWebhook(t.Context(), access.OfOperator, e.Owner(), e.ID, pgtest.AuditEntry(owner.ID, account.WebhookDeleted).ByKey(key.ID)); err != nil {
		t.Fatal(err)
	}
	entries, _, err := store.Identities.AuditLog(t.Context(), owner.ID, access.AuditQuery{Limit: 1})
	if err != nil || len(entries) != 1 || *entries[0].KeyID != key.ID || entries[0].KeyName != key.Name {
		t.Errorf("entries: %+v, %v", entries, err)
	}
}

// hour is the beginning of an hour that has passed.
func hour() time.Time { return pgtest.Now().Truncate(time.Hour).Add(-time.Hour) }

// occurrence is what an entry of the log tells of when and how often.
type occurrence struct {
	Action             account.Action
	First, Last        string
	Detail, LastDetail string
	Repeats            int
}

func occurrences(t *testing.T, store *rooms.Rooms, of uuid.UUID) []occurrence {
	t.Helper()
	entries, _, err := store.Identities.AuditLog(t.Context(), of, access.AuditQuery{Limit: 100})
	pgtest.Must(t, err)
	told := []occurrence{}
	for _, e := range entries {
		o := occurrence{Action: e.Action, First: e.OccurredAt.Format("04:05"), Detail: e.Detail, LastDetail: e.LastDetail, Repeats: e.Repeats}
		if e.LastAt != nil {
			o.Last = e.LastAt.Format("04:05")
		}
		told = append(told, o)
	}
	return told
}

// An hourly entry stands where it first happened, also across pages, and tells of its last time.
func TestAuditLog_HourlyOrder(t *testing.T) {
	t.Parallel()
	store, at := pgtest.New(t), hour()
	ann, err := account.New("", "ann@example.com", "hash", at)
	pgtest.Must(t, err)
	signedUp, err := account.NewAuditEntry(ann.ID, pgtest.Browser, account.SignedUp, at.Add(18*time.Minute))
	pgtest.Must(t, err)
	pgtest.Must(t, store.Identities.InsertAccount(t.Context(), ann, signedUp))
	audit := func(e account.AuditEntry) {
		t.Helper()
		pgtest.Must(t, store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error { return tx.Audit(ctx, e) }))
	}
	hourly := func(action account.Action, minute int) account.AuditEntry {
		return account.NewHourlyEntry(ann.ID, "subject", pgtest.Browser, action, at.Add(time.Duration(minute)*time.Minute))
	}
	audit(hourly(account.AccountSwitched, 46))
	pgtest.Must(t, store.Identities.AuditAttempt(t.Context(), ann.Email, hourly(account.SignInFailed, 40)))
	changed, err := account.NewAuditEntry(ann.ID, pgtest.Browser, account.PasswordChanged, at.Add(44*time.Minute))
	pgtest.Must(t, err)
	audit(changed)
	pgtest.Must(t, store.Identities.AuditAttempt(t.Context(), ann.Email, hourly(account.SignInFailed, 50)))
	pgtest.Must(t, store.Identities.AuditAttempt(t.Context(), ann.Email, hourly(account.SignInFailed, 49))) // one that was overtaken
	want := []occurrence{
		{Action: account.AccountSwitched, First: "46:00"},
		{Action: account.PasswordChanged, First: "44:00"},
		{Action: account.SignInFailed, First: "40:00", Last: "50:00", Repeats: 2},
		{Action: account.SignedUp, First: "18:00"},
	}
	if diff := cmp.Diff(want, occurrences(t, store, ann.ID)); diff != "" {
		t.Errorf("the log differs (-want +got):\n%s", diff)
	}
	paged, before := []account.Action{}, uuid.Nil
	for range want {
		page, _, err := store.Identities.AuditLog(t.Context(), ann.ID, access.AuditQuery{Before: before, Limit: 1})
		if err != nil || len(page) != 1 {
			t.Fatalf("%d entries on a page, %v", len(page), err)
		}
		paged, before = append(paged, page[0].Action), page[0].ID
	}
	if diff := cmp.Diff([]account.Action{account.AccountSwitched, account.PasswordChanged, account.SignInFailed, account.SignedUp}, paged); diff != "" {
		t.Errorf("the pages differ (-want +got):\n%s", diff)
	}
}

// What a key does to a webhook again and again is one entry an hour.
func TestAuditLog_HourlyByKey(t *testing.T) {
	t.Parallel()
	store, at := pgtest.New(t), hour()
	owner := pgtest.SignUp(t, store, "ann@example.com")
	key, other := pgtest.InsertKey(t, store, owner.ID), pgtest.InsertKey(t, store, owner.ID)
	rules := pgtest.WebhookRules(t, make([]byte, 32), nil)
	e, _ := pgtest.InsertWebhook(t, store, rules, owner)
	second, _ := pgtest.InsertWebhook(t, store, rules, owner)
	change := func(n int, by *account.Key, changed *webhooks.Endpoint) {
		t.Helper()
		entry, err := account.NewAuditEntry(owner.ID, pgtest.Browser, account.WebhookUpdated, at.Add(time.Duration(n)*time.Second))
		pgtest.Must(t, err)
		entry = entry.ByKey(by.ID)
		_, err = store.Webhooks.ChangeWebhook(t.Context(), access.OfOperator, changed.Owner(), changed.ID, &entry, func(*webhooks.Endpoint) (string, error) {
			return fmt.Sprintf("change %d", n), nil
		})
		pgtest.Must(t, err)
	}
	for n := range 1000 {
		change(n, key, e)
	}
	change(1001, other, e)
	change(1002, key, second)
	change(3600, key, e)
	want := []occurrence{
		{Action: account.WebhookUpdated, First: "00:00", Detail: e.ID.String() + ": change 3600"},
		{Action: account.WebhookUpdated, First: "16:42", Detail: second.ID.String() + ": change 1002"},
		{Action: account.WebhookUpdated, First: "16:41", Detail: e.ID.String() + ": change 1001"},
		{Action: account.WebhookUpdated, First: "00:00", Last: "16:39", Detail: e.ID.String() + ": change 0", LastDetail: e.ID.String() + ": change 999", Repeats: 999},
	}
	got := slices.DeleteFunc(occurrences(t, store, owner.ID), func(o occurrence) bool { return o.Action != account.WebhookUpdated })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log differs (-want +got):\n%s", diff)
	}
	if named := pgtest.LookUp[int](t, store, `SELECT count(*) FROM audit_log WHERE action = 'webhook_updated' AND key_name = $1`, key.Name); named != 4 {
		t.Errorf("%d entries name their key", named)
	}
}

// The statement of versions that date an hourly entry at the beginning of its hour and only count it.
const olderHourly = `INSERT INTO audit_log (id, account_id, occurred_at, actor, action, key_name, detail, ip_address, user_agent)
	VALUES ($1, $2, $3, 'owner', 'sign_in_failed', '', '', '', '') ON CONFLICT (id) DO UPDATE SET repeats = audit_log.repeats + 1`

// Entries of versions that only count are counted on, and those that such versions count have a last time.
func TestAuditLog_HourlyOlderVersion(t *testing.T) {
	t.Parallel()
	store, at := pgtest.New(t), hour()
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	attempt := func(of *account.Account, minute int) account.AuditEntry {
		return account.NewHourlyEntry(uuid.Nil, of.Email, account.Actor{}, account.SignInFailed, at.Add(time.Duration(minute)*time.Minute))
	}
	pgtest.Exec(t, store, olderHourly, attempt(ann, 0).ID, ann.ID, at)
	pgtest.Must(t, store.Identities.AuditAttempt(t.Context(), ann.Email, attempt(ann, 30)))
	want := occurrence{Action: account.SignInFailed, First: "00:00", Last: "30:00", Repeats: 1}
	if diff := cmp.Diff(want, occurrences(t, store, ann.ID)[1]); diff != "" {
		t.Errorf("an older version's entry differs (-want +got):\n%s", diff)
	}
	pgtest.Must(t, store.Identities.AuditAttempt(t.Context(), bob.Email, attempt(bob, 10)))
	pgtest.Exec(t, store, olderHourly, attempt(bob, 0).ID, bob.ID, at)
	entries, _, err := store.Identities.AuditLog(t.Context(), bob.ID, access.AuditQuery{Limit: 100})
	pgtest.Must(t, err)
	counted := entries[len(entries)-1]
	if counted.Repeats != 1 || !counted.OccurredAt.Equal(at.Add(10*time.Minute)) || counted.LastAt == nil || !counted.LastAt.After(at.Add(time.Hour)) {
		t.Errorf("an entry that an older version counted: %+v", counted)
	}
}
