package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
)

// changeAccount runs `core accounts disable|enable|delete EMAIL`.
func changeAccount(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return usageError("use: core accounts disable|enable|delete EMAIL")
	}
	verb, email := args[0], strings.ToLower(args[1])
	return withStore(nil, 0, func(store *postgres.Store) error {
		err := store.CheckMigrated(ctx)
		if err != nil {
			return err
		}
		switch verb {
		case "disable":
			err = store.DisableAccount(ctx, email, time.Now())
		case "enable":
			err = store.EnableAccount(ctx, email)
		case "delete":
			err = store.DeleteAccount(ctx, email, time.Now())
		default:
			return usageError(fmt.Sprintf("there is no command accounts %q", verb))
		}
		if errors.Is(err, account.ErrNotFound) {
			return fmt.Errorf("no account has the e-mail address %q", email)
		}
		if err == nil {
			fmt.Printf("%sd the account of %s\n", verb, email)
		}
		return err
	})
}
