package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
)

const accountsUsage = "use: core accounts create EMAIL [NAME], or core accounts reset-password|disable|enable|delete EMAIL"

// operator is who runs these commands.
var operator = account.Actor{Operator: true}

// changeAccount runs `core accounts …`.
func changeAccount(ctx context.Context, args []string) error {
	if len(args) < 2 || len(args) > 3 || len(args) == 3 && args[0] != "create" {
		return usageError(accountsUsage)
	}
	verb, email, name := args[0], strings.ToLower(args[1]), ""
	if len(args) == 3 {
		name = args[2]
	}
	return withStore(nil, 0, func(store *postgres.Store) error {
		done, err := "", store.CheckMigrated(ctx)
		if err != nil {
			return err
		}
		switch verb {
		case "create":
			done, err = createAccount(ctx, store, email, name)
		case "reset-password":
			done, err = resetPassword(ctx, store, email)
		case "disable":
			done, err = "disabled the account of "+email, store.DisableAccount(ctx, email, operator, time.Now())
		case "enable":
			done, err = "enabled the account of "+email, store.EnableAccount(ctx, email, operator, time.Now())
		case "delete":
			done, err = "deleted the account of "+email, store.DeleteAccount(ctx, email, operator, time.Now())
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

func createAccount(ctx context.Context, store *postgres.Store, email, name string) (done string, err error) {
	password, hash, err := newPassword(ctx)
	if err != nil {
		return "", err
	}
	created, err := account.New(name, email, hash, time.Now())
	if err != nil {
		return "", err
	}
	entry, err := account.NewAuditEntry(created.ID, operator, account.SignedUp, time.Now())
	if err != nil {
		return "", err
	}
	if err := store.InsertAccount(ctx, created, entry); err != nil {
		return "", err
	}
	return fmt.Sprintf("created the account of %s\npassword, not shown again: %s", email, password), nil
}

func resetPassword(ctx context.Context, store *postgres.Store, email string) (done string, err error) {
	password, hash, err := newPassword(ctx)
	if err != nil {
		return "", err
	}
	if err := store.SetPassword(ctx, email, hash, operator, time.Now()); err != nil {
		return "", err
	}
	return fmt.Sprintf("reset the password of %s and ended its sessions\npassword, not shown again: %s", email, password), nil
}

// newPassword makes a password of 130 random bits.
func newPassword(ctx context.Context) (password, hash string, err error) {
	passwords, err := account.NewPasswords()
	if err != nil {
		return "", "", err
	}
	password = rand.Text()
	hash, err = passwords.Hash(ctx, password)
	return password, hash, err
}
