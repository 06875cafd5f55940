package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"intents.internal/pkg/help"
	"intents.internal/pkg/testkit/embedded"
)

// dataFlag defines the flag of the data directory, which resolveData completes.
func dataFlag(flags *flag.FlagSet, data *string) {
	usual := "none"
	if dir, err := usualData(); err == nil {
		usual = dir
	}
	flags.StringVar(data, "data", "", "`DIR` of the database, the local chains, the account and the built services (default: "+usual+")")
}

// resolveData makes the data directory absolute; an empty one is LOCAL_DATA or the default.
func resolveData(data *string) error {
	var err error
	if *data == "" {
		if *data, err = usualData(); err != nil {
			return fmt.Errorf("find the default data directory: %w; set another with --data DIR", err)
		}
	}
	*data, err = filepath.Abs(*data)
	return err
}

func usualData() (string, error) {
	if data := os.Getenv("LOCAL_DATA"); data != "" {
		return filepath.Abs(data)
	}
	return embedded.DataDir()
}

// runSend sends the transaction of an intent, or of its refund.
func runSend(args []string) error {
	var data string
	flags := help.FlagSet("local send", args)
	dataFlag(flags, &data)
	refund := flags.Bool("refund", false, "send the transaction that refunds the order, once it has expired")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), "Usage: local send [flags] ID\n\nSends the transaction of the intent with this id or order id to its local chain, after the approval that it needs, and reports the hash.\nAn intent with signing it signs instead, and gives the signature to the service.\nOf a batch's id it does so for each intent.\n\n")
		flags.PrintDefaults()
	}
	ids, err := parseMixed(flags, args)
	if err == nil && len(ids) != 1 {
		err = errors.New("send takes one id or order id of an intent, or the id of a batch: go run ./deploy/local send ID [--refund]")
	}
	if err == nil {
		err = resolveData(&data)
	}
	if err != nil {
		return &usageError{err}
	}
	env, err := readEnv(data)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	sender, err := newSender(env, os.Stdout)
	if err != nil {
		return err
	}
	if *refund {
		return sender.refund(ctx, ids[0])
	}
	return sender.send(ctx, ids[0])
}

// parseMixed parses flags before and after the other arguments, which it returns.
func parseMixed(flags *flag.FlagSet, args []string) (others []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return others, nil
		}
		others = append(others, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// runEnv prints the environment of the running stack as commands of a shell.
func runEnv(args []string) error {
	var data string
	flags := help.FlagSet("local env", args)
	dataFlag(flags, &data)
	others, err := parseMixed(flags, args)
	if err == nil && len(others) > 0 {
		err = fmt.Errorf("unexpected argument %q", others[0])
	}
	if err == nil {
		err = resolveData(&data)
	}
	if err != nil {
		return &usageError{err}
	}
	text, err := os.ReadFile(filepath.Join(data, envName))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", data, errNotRunning)
	}
	if err == nil {
		_, err = os.Stdout.WriteString(exports(string(text)))
	}
	return err
}

// exports returns an environment file as export commands, which a shell takes by eval and by copy alike: what it starts has the variables too.
func exports(file string) string {
	var text strings.Builder
	for line := range strings.Lines(file) {
		text.WriteString("export " + line)
	}
	return text.String()
}
