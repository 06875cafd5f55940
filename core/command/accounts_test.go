package command_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	for _, email := range []string{"ann@example.com", "bob@example.com"} {
		a, err := account.New("", email, "hash", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		entry, err := account.NewAuditEntry(a.ID, account.Actor{}, account.SignedUp, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Identities.InsertAccount(t.Context(), a, entry); err != nil {
			t.Fatal(err)
		}
	}
	const states = `SELECT string_agg(concat_ws(' ', split_part(email, '@', 1), CASE WHEN email_verified_at IS NOT NULL THEN 'verified' END, CASE WHEN disabled_at IS NOT NULL THEN 'disabled' END,
		CASE WHEN deleted_at IS NOT NULL THEN 'deleted' END), ', ' ORDER BY email) FROM accounts`
	nobody := func(email string) result {
		return result{1, "", `core: no account has the e-mail address "` + email + "\"\n"}
	}
	for _, c := range []struct {
		verb, email string
		want        result
		states      string
	}{
		{"verify-email", "nobody@example.com", nobody("nobody@example.com"), "ann, bob"},
		{"disable", "ann@example.com", result{0, "disabled the account of ann@example.com\n", ""}, "ann disabled, bob"},
		{"enable", "ANN@example.com", result{0, "enabled the account of ann@example.com\n", ""}, "ann, bob"},
		{"delete", "bob@example.com", result{0, "deleted the account of bob@example.com\n", ""}, "ann, bob deleted"},
		{"enable", "bob@example.com", nobody("bob@example.com"), "ann, bob deleted"},
		{"disable", "nobody@example.com", nobody("nobody@example.com"), "ann, bob deleted"},
		{"verify-email", "ANN@example.com", result{0, "noted that ann@example.com belongs to the owner of its account\n", ""}, "ann verified, bob deleted"},
	} {
		if got := core(t, "", on(url), "accounts", c.verb, c.email); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.verb, c.email, got, c.want)
		}
		if got := lookUp[string](t, store, states); got != c.states {
			t.Errorf("after %s %s: %s, want %s", c.verb, c.email, got, c.states)
		}
	}
}

func TestAccounts_List(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	insert := func(n int, more string) {
		pgtest.Exec(t, store, fmt.Sprintf(`INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at%s`, more),
			fmt.Sprintf("00000000-0000-7000-8000-%012d", n), fmt.Sprintf("Shop %d", n), fmt.Sprintf("%d@example.com", n))
	}
	insert(1, `) VALUES ($1, E'A\tshop' || right($2, 0), $3, 'hash', '2026-01-02', '2026-01-02')`)
	insert(2, `, disabled_at, shared, limit_requests, limit_period_seconds) VALUES ($1, $2, $3, '', '2026-01-02', '2026-01-02', now(), true, 5, 60)`)
	insert(3, `, email_verified_at) VALUES ($1, $2, $3, 'hash', '2026-01-02', '2026-01-02', now())`)
	insert(4, `, deleted_at) VALUES ($1, $2, $3, 'hash', '2026-01-02', '2026-01-02', now())`)
	for n, environment := range []string{"live", "test", "test"} {
		pgtest.Exec(t, store, `INSERT INTO api_keys (id, account_id, name, hash, start, environment, enabled, limit_requests, limit_period_seconds, created_at, updated_at,
				limit_bucket, scopes, networks, deleted_at)
			VALUES (gen_random_uuid(), '00000000-0000-7000-8000-000000000003', 'key', sha256($1::text::bytea), 'sk_' || $2 || '_abcd', $2, true, 50, 60, now(), now(),
				gen_random_uuid(), '{webhooks}', '{}', CASE WHEN $1::int = 2 THEN now() END)`, n, environment)
	}
	addPasskeys(t, store, "3@example.com", 2)
	const want = `id                                    address        name    created     live keys  test keys  passkeys  limit     state
00000000-0000-7000-8000-000000000001  1@example.com  A shop  2026-01-02  0          0          0         1000/60s  unverified
00000000-0000-7000-8000-000000000002  2@example.com  Shop 2  2026-01-02  0          0          0         5/60s     disabled, shared
00000000-0000-7000-8000-000000000003  3@example.com  Shop 3  2026-01-02  1          1          2         1000/60s  active
`
	if got := core(t, "", on(url), "accounts", "list"); got != (result{0, want, ""}) {
		t.Errorf("%+v, want %s", got, want)
	}
	second, err := store.Identities.ListAccounts(t.Context(), uuid.MustParse("00000000-0000-7000-8000-000000000001"), 1)
	if err != nil || len(second) != 1 || second[0].Email != "2@example.com" {
		t.Errorf("the page after the first: %+v, %v", second, err)
	}
}

// addPasskeys adds passkeys to the person with an address.
func addPasskeys(t *testing.T, store *rooms.Rooms, email string, n int) {
	t.Helper()
	for range n {
		pgtest.Exec(t, store, `INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, backup_eligible, backed_up, transports,
			aaguid, name, created_at)
			SELECT gen_random_uuid(), id, uuid_send(gen_random_uuid()), 'key', 0, false, false, '', gen_random_uuid(), 'laptop', now()
			FROM accounts WHERE email = $1`, email)
	}
}

// Recovery removes the passkeys of a person, ends the sessions, and tells the person where mail is configured.
func TestAccounts_RemovePasskeys(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	core(t, "", on(url), "accounts", "create", "ann@example.com")
	addPasskeys(t, store, "ann@example.com", 2)
	pgtest.Exec(t, store, `INSERT INTO sessions (id, token_hash, account_id, ip_address, user_agent, expires_at, created_at, updated_at)
		SELECT gen_random_uuid(), sha256('token'), id, '', '', now() + interval '1 h', now(), now() FROM accounts`)
	mailing := append(on(url), "CORE_SMTP_URL=smtp://127.0.0.1:25", "CORE_SMTP_FROM=no-reply@example.com")
	for _, c := range []struct {
		environment []string
		email       string
		want        result
		mails       int
	}{
		{on(url), "nobody@example.com", result{1, "", "core: no account has the e-mail address \"nobody@example.com\"\n"}, 0},
		{mailing, "ANN@example.com", result{0, "removed the passkeys of ann@example.com, 2, and ended its sessions\n", ""}, 1},
		{on(url), "ann@example.com", result{0, "removed the passkeys of ann@example.com, 0, and ended its sessions\n", ""}, 1},
	} {
		if got := core(t, "", c.environment, "accounts", "remove-passkeys", c.email); got != c.want {
			t.Errorf("remove-passkeys %s: %+v, want %+v", c.email, got, c.want)
		}
		if mails := lookUp[int](t, store, `SELECT count(*) FROM mails`); mails != c.mails {
			t.Errorf("after %s: %d mails, want %d", c.email, mails, c.mails)
		}
	}
	if left := lookUp[int](t, store, `SELECT (SELECT count(*) FROM passkeys) + (SELECT count(*) FROM sessions)`); left != 0 {
		t.Errorf("%d passkeys and sessions are left", left)
	}
	if told := lookUp[string](t, store, `SELECT string_agg(actor || ': ' || detail, ', ' ORDER BY id) FROM audit_log WHERE action = 'passkeys_removed'`); told !=
		"operator: 2; all sessions ended, operator: 0; all sessions ended" {
		t.Errorf("the audit log says %q", told)
	}
}

// Disabling the last owner of a shared account names that account.
func TestAccounts_DisableLastOwner(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	pgtest.Exec(t, store, `INSERT INTO accounts (id, name, email, password_hash, shared, created_at, updated_at) VALUES
		('00000000-0000-7000-8000-00000000000a', 'Ann', 'ann@example.com', 'x', false, now(), now()),
		('00000000-0000-7000-8000-00000000000b', 'Bob', 'bob@example.com', 'x', false, now(), now()),
		('00000000-0000-7000-8000-00000000000c', 'Shop', 'shop@shared.invalid', '', true, now(), now())`)
	pgtest.Exec(t, store, `INSERT INTO members (account_id, person_id, role, created_at)
		SELECT shop.id, person.id, 'owner', now() FROM accounts AS shop, accounts AS person WHERE shop.shared AND NOT person.shared`)
	for _, c := range []struct{ verb, email, want string }{
		{"disable", "ann@example.com", "disabled the account of ann@example.com\n"},
		{"disable", "bob@example.com", "disabled the account of bob@example.com\n" +
			`no owner is left to manage the shared account "Shop", 00000000-0000-7000-8000-00000000000c: enable one, or end it with core accounts delete shop@shared.invalid` + "\n"},
		{"enable", "ann@example.com", "enabled the account of ann@example.com\n"},
		{"disable", "bob@example.com", "disabled the account of bob@example.com\n"},
	} {
		if got := core(t, "", on(url), "accounts", c.verb, c.email); got != (result{0, c.want, ""}) {
			t.Errorf("%s %s: %+v, want %s", c.verb, c.email, got, c.want)
		}
	}
}

func TestAccounts_Passwords(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	passwords := account.NewPasswords(account.OWASP)
	// run gives the password that a command prints.
	run := func(says string, args ...string) string {
		t.Helper()
		got := core(t, "", on(url), append([]string{"accounts"}, args...)...)
		form := regexp.MustCompile(`^` + regexp.QuoteMeta(says) + `\npassword, not shown again: ([A-Z2-7]{26,})\n$`)
		found := form.FindStringSubmatch(got.Out)
		if got.Code != 0 || got.ErrOut != "" || found == nil {
			t.Fatalf("core accounts %s: %+v", args, got)
		}
		return found[1]
	}
	opens := func(password string, want bool) *account.Account {
		t.Helper()
		ann, err := store.Identities.AccountByEmail(t.Context(), "ann@example.com")
		if err != nil {
			t.Fatal(err)
		}
		if matches, err := passwords.Matches(t.Context(), password, ann.PasswordHash); matches != want || err != nil {
			t.Errorf("the password opens the account: %t, %v; want %t", matches, err, want)
		}
		return ann
	}

	first := run("created the account of ann@example.com", "create", "Ann@example.com", "Ann Lee")
	ann := opens(first, true)
	if !ann.EmailVerified() {
		t.Error("the address that the operator named is not verified")
	}
	if ann.Name != "Ann Lee" {
		t.Errorf("the account's name is %q", ann.Name)
	}
	session, _, err := account.NewSession(ann.ID, "", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := account.NewAuditEntry(ann.ID, account.Actor{}, account.SignedIn, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Identities.InsertSession(t.Context(), session, ann, entry); err != nil {
		t.Fatal(err)
	}
	second := run("reset the password of ann@example.com and ended its sessions", "reset-password", "ann@example.com")
	opens(first, false)
	opens(second, true)
	if n := lookUp[int](t, store, `SELECT count(*) FROM sessions`); n != 0 {
		t.Errorf("%d sessions outlive the password", n)
	}
	run("created the account of bob@example.com", "create", "bob@example.com")
	if name := lookUp[string](t, store, `SELECT name FROM accounts WHERE email LIKE 'bob%'`); name != "bob@example.com" {
		t.Errorf("the name defaults to %q", name)
	}
	const promise = "whoever opens this link within an hour chooses another password for ann@example.com; it works once and is not shown again:\n"
	link := core(t, "", append(on(url), "CORE_PUBLIC_URL=https://intents.example"), "accounts", "reset-link", "ann@example.com")
	if !regexp.MustCompile("^" + regexp.QuoteMeta(promise) + `https://intents\.example/console/reset-password\?token=[A-Za-z0-9_-]{43}\n$`).MatchString(link.Out) {
		t.Errorf("core accounts reset-link: %+v", link)
	}
	for _, limit := range []struct{ text, says, stored string }{
		{"5000/60s", "the limit of ann@example.com is 5000/60s", "5000/60"},
		{"20/1m30s", "the limit of ann@example.com is 20/90s", "20/90"},
		{"default", "the limit of ann@example.com is the default again: 1000/60s", "none"},
	} {
		if got := core(t, "", on(url), "accounts", "limit", "ann@example.com", limit.text); got != (result{0, limit.says + "\n", ""}) {
			t.Errorf("core accounts limit %s: %+v", limit.text, got)
		}
		stored := lookUp[string](t, store, `SELECT coalesce(limit_requests || '/' || limit_period_seconds, 'none') FROM accounts WHERE email LIKE 'ann%'`)
		if stored != limit.stored {
			t.Errorf("core accounts limit %s stored %s", limit.text, stored)
		}
	}
	details := lookUp[string](t, store, `SELECT string_agg(detail, ', ' ORDER BY id) FROM audit_log WHERE action = 'account_limit_changed'`)
	if want := "5000/60s, 20/90s, default"; details != want {
		t.Errorf("the audit log has %s, want %s", details, want)
	}
	log := fmt.Sprintf(`SELECT string_agg(actor || ' ' || action, ', ' ORDER BY id) FROM audit_log WHERE account_id = '%s'`, ann.ID)
	if got, want := lookUp[string](t, store, log), "operator signed_up, owner signed_in, operator password_reset, operator reset_link_made, "+
		"operator account_limit_changed, operator account_limit_changed, operator account_limit_changed"; got != want {
		t.Errorf("audit log: %s, want %s", got, want)
	}

	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"create", "ann@example.com"}, "an account with this e-mail address exists"},
		{[]string{"create", "ann"}, "email must be an e-mail address such as name@example.com"},
		{[]string{"reset-link", "nobody@example.com"}, `no account has the e-mail address "nobody@example.com"`},
		{[]string{"limit", "nobody@example.com", "default"}, `no account has the e-mail address "nobody@example.com"`},
		{[]string{"limit", "ann@example.com", "1000"}, "limit must be requests/period such as 1000/60s: 1 to 1000000000 requests in 1s to 24h0m0s, in whole seconds"},
		{[]string{"reset-password", "nobody@example.com"}, `no account has the e-mail address "nobody@example.com"`},
	} {
		if got := core(t, "", on(url), append([]string{"accounts"}, c.args...)...); got != (result{1, "", "core: " + c.says + "\n"}) {
			t.Errorf("core accounts %s: %+v", c.args, got)
		}
	}
}

func TestAccounts_Erase(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	run := func(name string) result { return core(t, "", on(url), "accounts", "erase", name) }
	for range 2 { // the address is free again once the account has ended
		core(t, "", on(url), "accounts", "create", "ann@example.com", "Ann Lee")
		core(t, "", on(url), "accounts", "delete", "ann@example.com")
	}
	core(t, "", on(url), "accounts", "create", "bob@example.com")
	id := func(n int) string {
		return lookUp[string](t, store, fmt.Sprintf(`SELECT id::text FROM accounts ORDER BY id OFFSET %d LIMIT 1`, n))
	}
	for _, c := range []struct {
		name string
		want result
	}{
		{id(0), result{0, "erased account " + id(0) + ", rows changed: accounts 1\n", ""}},
		{"Ann@example.com", result{0, "erased account " + id(1) + ", rows changed: accounts 1\n", ""}},
		{id(1), result{0, "account " + id(1) + " has nothing left to erase\n", ""}},
		{"ann@example.com", result{1, "", `core: no account has the e-mail address or id "ann@example.com"; one that was erased has its id alone` + "\n"}},
		{"bob@example.com", result{1, "", "core: account " + id(2) + " has not ended: end it first, with core accounts delete EMAIL\n"}},
	} {
		if got := run(c.name); got != c.want {
			t.Errorf("erase %s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if left := lookUp[string](t, store, `SELECT string_agg(email, ' ' ORDER BY id) FROM accounts`); left !=
		id(0)+"@erased.invalid "+id(1)+"@erased.invalid bob@example.com" {
		t.Errorf("addresses left: %s", left)
	}
}
