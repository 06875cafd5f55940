// Package command is core on the command line: each command wires the rooms that it needs. It keeps accounts, API keys, chains, tokens and transfer intents in Postgres and serves them to gateways.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/help"
	"intents.internal/pkg/telemetry"
)

const usage = `core keeps accounts, API keys, chains, tokens and transfer intents.

  core serve                             serve gateways until TERM, and watch chains unless CORE_WATCH=false
  core watch                             watch chains until TERM, and serve nobody
  core healthcheck                       ask the core of these settings, on this machine, whether it is ready
  core migrate                           bring the database up to this version
  core version                           print the version
  core chains list                       print the chains that are registered
  core chains import FILE                add and update chains; - reads standard input
  core chains check [FILE]               ask every provider of CORE_RPC_FILE whether its chain can be watched; print a table; with a
                                         file, only about its chains, as they would be once it is imported
  core chains resume CHAIN --from N      watch a chain again that was stopped, from this block on
  core tokens import FILE                add and update tokens from a token list; - reads standard input; --source NAME and
                                         --license SPDX are recorded with the tokens
  core tokens check [FILE]               ask every provider of CORE_RPC_FILE whether tokens take the signatures that their erc3009 and
                                         eip2612 say; print a table; with a file, only about the tokens of that list
  core tokens sources                    print how many tokens come from which source, and under which licence
  core accounts list                     print the accounts that have not ended, oldest first
  core accounts create EMAIL [NAME]      make an account and print its password, once
  core accounts reset-password EMAIL     give an account another password, print it once and end its sessions
  core accounts reset-link EMAIL         print a link with which an account chooses another password, once within an hour
  core accounts remove-passkeys EMAIL    remove all passkeys of a person whom you know, who has lost them, and end the sessions
  core accounts verify-email EMAIL       note that an account's address is its own
  core accounts disable|enable EMAIL     refuse an account's keys and sign-ins, or take that back
  core accounts limit EMAIL N/60s        let all keys of an account in one environment together make N requests in 60 seconds;
                                         default instead of N/60s for 20 times the limit of one key
  core accounts delete EMAIL             end an account for good; its intents stay
  core accounts erase EMAIL|ID           erase the personal data of an account that has ended; its intents stay
  core screening check FILE…             print what the files of addresses contain, and what differs from those of CORE_SCREENING_FILE;
                                         --accept-smaller lets them in as they are, smaller or empty, on every core
  core screening hits                    print where listed addresses were met; --since 24h, --account EMAIL|ID, --json
  core screening find ADDRESS            print whether an address is listed, by which line, and which intents have it

Settings come from the environment, and from the file that CORE_ENV_FILE names; CORE_DATABASE_URL is the one that every command needs.
`

// Main runs the command that the arguments name, until it ends or the process is asked to stop, and sets the exit status.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "core:", err)
		if _, misuse := errors.AsType[usageError](err); misuse {
			os.Exit(2) //nolint:gocritic // nothing is left to clean up
		}
		os.Exit(1)
	}
}

// usageError is an invalid command line.
type usageError string

func (e usageError) Error() string { return string(e) + "\n\n" + usage }

// commands are the subcommands by their first word.
var commands = map[string]func(ctx context.Context, args []string) error{
	"serve": serve, "watch": watchChains, "healthcheck": checkHealth, "migrate": migrate, "chains": changeChains, "tokens": changeTokens,
	"accounts": changeAccount, "screening": askScreening,
}

func run(ctx context.Context, args []string) error {
	switch {
	case help.Asked(args):
		fmt.Print(usage)
		return nil
	case help.VersionAsked(args):
		fmt.Print(help.Version("core"))
		return nil
	case len(args) == 0:
		return usageError("name a command")
	case commands[args[0]] == nil:
		return usageError(fmt.Sprintf("there is no command %q", args[0]))
	default:
		return commands[args[0]](ctx, args[1:])
	}
}

// migrate runs `core migrate`.
func migrate(ctx context.Context, args []string) error {
	if len(args) != 0 {
		return usageError("the command takes other words")
	}
	return withStore(func(store *rooms.Rooms) error { return migrateDatabase(ctx, store) })
}

// checkHealth runs `core healthcheck`, the probe for a container without a shell.
func checkHealth(ctx context.Context, args []string) error {
	if len(args) != 0 {
		return usageError("healthcheck takes no further words; settings come from the environment")
	}
	config, err := readConfig(Config.check)
	if err != nil {
		return err
	}
	return telemetry.Probe(ctx, config.OpsListen)
}

// withStore runs a one-off command on the database.
func withStore(work func(*rooms.Rooms) error) (err error) {
	config, err := readConfig(Config.checkDatabase)
	if err != nil {
		return err
	}
	store, err := openStore(config, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return work(store)
}

func openStore(config Config, metrics prometheus.Registerer) (*rooms.Rooms, error) {
	return rooms.Open(config.DatabaseURL.Reveal(), postgres.Options{
		MaxConnections: config.DatabaseConnections, StatementTimeout: config.StatementTimeout, Metrics: metrics,
		MigrateURL: config.MigrateDatabaseURL.Reveal(), ReadURL: config.ReadDatabaseURL.Reveal(),
		Traced: config.tracing().On(),
	})
}

func migrateDatabase(ctx context.Context, store *rooms.Rooms) error {
	applied, err := store.Migrate(ctx)
	if err != nil {
		return err
	}
	for _, name := range applied {
		fmt.Println("applied", name)
	}
	if len(applied) == 0 {
		fmt.Println("the database is up to date")
	}
	return nil
}
