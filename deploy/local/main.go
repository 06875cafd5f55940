// Command local runs the whole service on this machine until Ctrl-C: a private Postgres and Redis, cores and gateways, and two local
// chains, each a process. It reads the flags, prints the addresses, keys and links of mails, and handles signals; package stack runs the
// service. Its subcommands are for use beside a running stack: `send` sends an intent's transaction to a local chain, `walk` makes
// README's walk, `env` prints the addresses and keys.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/help"
)

func main() {
	err := runCommand(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if _, wrong := errors.AsType[*usageError](err); wrong {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

// usageError is an error of the arguments.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// runCommand runs the subcommand of the arguments, or the stack.
func runCommand(args []string) error {
	if help.VersionAsked(args) {
		fmt.Print(help.Version("local"))
		return nil
	}
	if len(args) > 0 {
		switch args[0] {
		case "send":
			return runSend(args[1:])
		case "walk":
			return runWalk(args[1:])
		case "env":
			return runEnv(args[1:])
		}
	}
	options, err := readOptions(args)
	if err != nil {
		return &usageError{err}
	}
	return run(options)
}

// options are the flags and the settings of the environment.
type options struct {
	config  stack.Config
	envFile string
	verbose bool
}

func readOptions(args []string) (options, error) {
	var o options
	flags := help.FlagSet("local", args)
	dataFlag(flags, &o.config.Data)
	flags.BoolVar(&o.config.Reset, "reset", false, "start over: remove the database, the local chains and the account in the data directory first")
	flags.StringVar(&o.config.Listen, "listen", "127.0.0.1:8080", "`HOST:PORT` of the first gateway; port 0 is a free one")
	flags.IntVar(&o.config.Gateways, "gateways", 1, "`N` gateways; those after the first listen on free ports")
	flags.IntVar(&o.config.Cores, "cores", 1, "`N` cores on one database, which every gateway uses")
	noChains := flags.Bool("no-chains", false, "run without the two local chains, their test tokens and the demonstration solver")
	flags.StringVar(&o.config.ChainsFile, "chains", "", "`FILE` with a list of chains to add to the default ones")
	flags.StringVar(&o.config.TokensFile, "tokens", "", "`FILE` with a list of tokens to add to the default ones")
	flags.StringVar(&o.config.RPCFile, "rpc", "", "`FILE` with the RPC URLs of the chains to watch (CORE_RPC_FILE); deploy/settings.md has its format")
	flags.StringVar(&o.envFile, "env-file", "", "`FILE` for the addresses, keys and process ids, written once all is ready and removed at the end")
	flags.BoolVar(&o.verbose, "v", false, "show every line of every process; they are also in the file "+logName+" of the data directory")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), "Runs the whole service on this machine until Ctrl-C. While it runs:\n\n"+
			"  go run ./deploy/local send ID            sends the transaction of an intent, or of each in a batch, to its local chain and reports the hash\n"+
			"  go run ./deploy/local send ID --refund   sends the transaction that refunds an order that has expired\n"+
			"  go run ./deploy/local walk               makes the walk of deploy/local/README.md, and shows each request and answer in short\n"+
			"  go run ./deploy/local env                prints the addresses, keys and process ids as export NAME=value, for eval\n\n"+
			"LOCAL_DATA is the data directory where --data is not given, for these too.\n"+
			"LOCAL_DATABASE_URL and LOCAL_REDIS_URL are existing servers to use instead of private ones; core migrates that database\n"+
			"and creates an account in it. DATABASE_URL and REDIS_URL are not read.\n"+
			"CORE_QUOTES_FILE is a file of providers of quotes to ask instead of the demonstration solver; deploy/quotes.md has its format.\n\n")
		flags.PrintDefaults()
	}
	if args = slices.Clone(args); len(args) > 0 && args[0] == "help" {
		args[0] = "-help"
	}
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q; -help lists the flags", flags.Arg(0))
	}
	if err := resolveData(&o.config.Data); err != nil {
		return options{}, err
	}
	o.config.LocalChains = !*noChains
	o.config.DatabaseURL = os.Getenv("LOCAL_DATABASE_URL")
	o.config.RedisURL = os.Getenv("LOCAL_REDIS_URL")
	return o, nil
}

func run(o options) (err error) {
	file, err := newEnvFile(o.config.Data, o.envFile)
	if err != nil {
		return err
	}
	log, closeLog, err := openLog(o.config.Data, os.Stderr, o.verbose)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	o.config.Log = log
	defer func() { err = errors.Join(err, file.remove()) }()
	ctx, stop := stopContext(file)
	defer stop()

	o.config.Mail = printMail(os.Stdout)
	s, err := stack.Start(ctx, o.config)
	if err != nil && ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "local: stopped while starting:", context.Cause(ctx))
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := file.write(s.Env()); err != nil {
		return err
	}
	printBanner(os.Stdout, s.Env(), o.config.Data)
	for {
		select {
		case <-s.Changed():
			if err := file.write(s.Env()); err != nil {
				return err
			}
		case <-ctx.Done():
			fmt.Fprintf(os.Stderr, "local: %s: stopping; a second signal exits at once\n", context.Cause(ctx))
			return nil
		}
	}
}

// stopContext is a context that is canceled by the first signal, or when the go command that runs this program ends. The second
// signal exits at once, which also ends the child processes.
func stopContext(file *envFile) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	// Otherwise a write to a closed pipe or terminal ends this program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	done := make(chan struct{})
	goEnded := watchGoCommand(done)
	go func() {
		for count := 0; ; {
			select {
			case received := <-signals:
				if count++; count > 1 {
					_ = file.remove()
					os.Exit(130)
				}
				cancel(errors.New(received.String()))
			case <-goEnded:
				goEnded = nil
				cancel(errors.New("go run has ended"))
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { close(done) }
}
