package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/rooms"
)

const accountsUsage = "use: core accounts list, or core accounts create EMAIL [NAME], or core accounts reset-password|reset-link|verify-email|disable|enable|delete EMAIL, " +
	"or core accounts remove-passkeys EMAIL, or core accounts limit EMAIL N/60s|default, or core accounts erase EMAIL|ID"

// operator is the audit log's actor for these commands.
var operator = account.Actor{Operator: true}

// changeAccount runs `core accounts …`.
func changeAccount(ctx context.Context, args []string) error {
	if slices.Equal(args, []string{"list"}) {
		return withStore(func(store *rooms.Rooms) error { return listAccounts(ctx, store, os.Stdout) })
	}
	if len(args) < 2 || len(args) > 3 || (len(args) == 3) != (args[0] == "limit") && args[0] != "create" {
		return usageError(accountsUsage)
	}
	verb, email, more := args[0], strings.ToLower(args[1]), ""
	if len(args) == 3 {
		more = args[2]
	}
	return withStore(func(store *rooms.Rooms) error {
		done, err := "", store.CheckMigrated(ctx)
		if err != nil {
			return err
		}
		switch verb {
		case "create":
			done, err = createAccount(ctx, store, email, more)
		case "reset-password":
			done, err = resetPassword(ctx, store, email)
		case "reset-link":
			done, err = makeResetLink(ctx, store, email)
		case "remove-passkeys":
			done, err = removePasskeys(ctx, store, email)
		case "verify-email":
			done, err = "noted that "+email+" belongs to the owner of its account", store.Identities.VerifyEmail(ctx, email, operator, time.Now())
		case "disable":
			done, err = disableAccount(ctx, store, email)
		case "enable":
			done, err = "enabled the account of "+email, store.Identities.EnableAccount(ctx, email, operator, time.Now())
		case "delete":
			done, err = "deleted the account of "+email, store.Identities.DeleteAccount(ctx, email, operator, time.Now())
		case "limit":
			done, err = setAccountLimit(ctx, store, email, more)
		case "erase":
			done, err = eraseAccounts(ctx, store, email)
		default:
			return usageError(fmt.Sprintf("there is no command accounts %q", verb))
		}
		if errors.Is(err, account.ErrNotFound) {
			return fmt.Errorf("no account has the e-mail address %q", email)
		}
		if err == nil {
			fmt.Println(done)
		}
		return err
	})
}

func createAccount(ctx context.Context, store *rooms.Rooms, email, name string) (done string, err error) {
	password, hash, err := newPassword(ctx)
	if err != nil {
		return "", err
	}
	created, err := account.New(name, email, hash, time.Now())
	if err != nil {
		return "", err
	}
	created.EmailVerifiedAt = created.CreatedAt // the operator knows whom they make it for
	entry, err := account.NewAuditEntry(created.ID, operator, account.SignedUp, time.Now())
	if err != nil {
		return "", err
	}
	if err := store.Identities.InsertAccount(ctx, created, entry); err != nil {
		return "", err
	}
	return fmt.Sprintf("created the account of %s\npassword, not shown again: %s", email, password), nil
}

func resetPassword(ctx context.Context, store *rooms.Rooms, email string) (done string, err error) {
	password, hash, err := newPassword(ctx)
	if err != nil {
		return "", err
	}
	if err := store.Identities.SetPassword(ctx, email, hash, operator, time.Now()); err != nil {
		return "", err
	}
	return fmt.Sprintf("reset the password of %s and ended its sessions\npassword, not shown again: %s", email, password), nil
}

// makeResetLink makes a link like those that are mailed.
func makeResetLink(ctx context.Context, store *rooms.Rooms, email string) (done string, err error) {
	config, err := readConfig(Config.checkPublicURL)
	if err != nil {
		return "", err
	}
	owner, err := store.Identities.AccountByEmail(ctx, email)
	if err != nil {
		return "", err
	}
	token, now := account.NewLinkToken(), store.Now()
	entry, err := account.NewAuditEntry(owner.ID, operator, account.ResetLinkMade, now)
	if err != nil {
		return "", err
	}
	if err := store.Identities.InsertResetToken(ctx, owner, account.HashToken(token), now.Add(account.LinkLifetime), &entry); err != nil {
		return "", err
	}
	return fmt.Sprintf("whoever opens this link within an hour chooses another password for %s; it works once and is not shown again:\n%s",
		owner.Email, identity.ResetURL(config.PublicURL, token)), nil
}

// removePasskeys is the recovery of a person who has lost all passkeys, by an operator who knows the person. The person is told where mail is
// configured.
func removePasskeys(ctx context.Context, store *rooms.Rooms, email string) (done string, err error) {
	config, err := readConfig(Config.checkPublicURL)
	if err != nil {
		return "", err
	}
	notice := account.NoticeToPerson
	if config.SMTPURL == "" {
		notice = ""
	}
	removed, err := store.Identities.RemovePasskeys(ctx, email, notice, operator, time.Now())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("removed the passkeys of %s, %d, and ended its sessions", email, removed), nil
}

// disableAccount also names the shared accounts that nobody can manage from then on.
func disableAccount(ctx context.Context, store *rooms.Rooms, email string) (done string, err error) {
	if err := store.Identities.DisableAccount(ctx, email, operator, time.Now()); err != nil {
		return "", err
	}
	done = "disabled the account of " + email
	shared, err := store.Identities.SharedWithoutOwner(ctx, email)
	for _, a := range shared {
		done += fmt.Sprintf("\nno owner is left to manage the shared account %q, %s: enable one, or end it with core accounts delete %s", a.Name, a.ID, a.Email)
	}
	return done, err
}

// setAccountLimit changes the limit of all keys of an account in one environment together.
func setAccountLimit(ctx context.Context, store *rooms.Rooms, email, text string) (done string, err error) {
	if text == "default" {
		return fmt.Sprintf("the limit of %s is the default again: %s", email, account.DefaultAccountLimit),
			store.Identities.SetAccountLimit(ctx, email, nil, operator, time.Now())
	}
	limit, err := account.ParseLimit(text)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the limit of %s is %s", email, limit), store.Identities.SetAccountLimit(ctx, email, &limit, operator, time.Now())
}

// eraseAccounts erases the personal data of the account with an id, or of all that had an e-mail address. All must have ended.
func eraseAccounts(ctx context.Context, store *rooms.Rooms, name string) (done string, err error) {
	ids := make([]uuid.UUID, 1)
	if ids[0], err = uuid.Parse(name); err != nil {
		if ids, err = store.Identities.AccountsByEmail(ctx, name); err != nil {
			return "", err
		}
	}
	var lines []string
	for _, id := range ids {
		erased, err := store.Retention.EraseAccount(ctx, id, time.Now())
		if errors.Is(err, account.ErrNotEnded) {
			err = fmt.Errorf("account %s has not ended: end it first, with core accounts delete EMAIL", id)
		}
		if err != nil && !errors.Is(err, account.ErrNotFound) {
			if len(lines) > 0 {
				err = fmt.Errorf("%s; then %w", strings.Join(lines, "; "), err)
			}
			return "", err
		}
		if err == nil {
			lines = append(lines, erasedLine(id, erased))
		}
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("no account has the e-mail address or id %q; one that was erased has its id alone", name)
	}
	return strings.Join(lines, "\n"), nil
}

// erasedLine is such as "erased account ID: accounts 1, audit_log 12".
func erasedLine(id uuid.UUID, erased map[string]int64) string {
	if len(erased) == 0 {
		return fmt.Sprintf("account %s has nothing left to erase", id)
	}
	var parts []string
	for _, table := range slices.Sorted(maps.Keys(erased)) {
		parts = append(parts, fmt.Sprintf("%s %d", table, erased[table]))
	}
	return fmt.Sprintf("erased account %s, rows changed: %s", id, strings.Join(parts, ", "))
}

// newPassword makes a password of 130 random bits.
func newPassword(ctx context.Context) (password, hash string, err error) {
	password = rand.Text()
	hash, err = account.NewPasswords(account.OWASP).Hash(ctx, password)
	return password, hash, err
}
