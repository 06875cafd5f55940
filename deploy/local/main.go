// Command local runs the whole service on this machine: a private Postgres and Redis, core, and its gateways, as real
// processes, until Ctrl-C. It only reads flags, prints what a person needs, and passes signals on; package stack does the
// work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/embedded"
)

func main() {
	options, err := readOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(2)
	}
	if err := run(options); err != nil {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	config  stack.Config
	envFile string
}

func readOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("local", flag.ContinueOnError)
	flags.StringVar(&o.config.Data, "data", "", "`DIR` for the database, the account and the built services (default: "+defaultData()+")")
	flags.BoolVar(&o.config.Reset, "reset", false, "start over: remove the database and the account in the data directory first")
	flags.StringVar(&o.config.Listen, "listen", "127.0.0.1:8080", "`HOST:PORT` of the first gateway; port 0 takes a free one")
	flags.IntVar(&o.config.Gateways, "gateways", 1, "`N` gateways; those after the first listen on free ports")
	flags.IntVar(&o.config.Cores, "cores", 1, "`N` cores on one database, which every gateway uses")
	flags.StringVar(&o.envFile, "env-file", "", "`FILE` to write addresses, keys and process ids to once all is ready; removed at the end")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), "Runs the whole service on this machine until Ctrl-C.\n"+
			"LOCAL_DATABASE_URL and LOCAL_REDIS_URL, when set, name servers to use instead of private ones; core migrates that database\n"+
			"and makes an account in it. DATABASE_URL and REDIS_URL are not read.\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("what is %q? There are only flags; -help lists them", flags.Arg(0))
	}
	if o.config.Data == "" {
		data, err := embedded.DataDir()
		if err != nil {
			return options{}, fmt.Errorf("no place for the data: name one with --data DIR: %w", err)
		}
		o.config.Data = data
	}
	o.config.DatabaseURL = os.Getenv("LOCAL_DATABASE_URL")
	o.config.RedisURL = os.Getenv("LOCAL_REDIS_URL")
	o.config.Log = os.Stderr
	return o, nil
}

func defaultData() string {
	data, err := embedded.DataDir()
	if err != nil {
		return "none"
	}
	return data
}

func run(o options) (err error) {
	file, err := newEnvFile(o.envFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.remove()) }()
	ctx, stop := untilStopped(file)
	defer stop()

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
	printBanner(s.Env(), o.config.Data)
	for {
		select {
		case <-s.Changed():
			if err := file.write(s.Env()); err != nil {
				return err
			}
		case <-ctx.Done():
			fmt.Fprintf(os.Stderr, "local: %s: stopping; once more to stop at once\n", context.Cause(ctx))
			return nil
		}
	}
}

// untilStopped is a context that ends at the first signal, or with the go command that runs this program. The second signal
// ends this program at once; its children cannot outlive it.
func untilStopped(file *envFile) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	// With this, writing to a terminal or pipe that has gone is an error like any other and not the end.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	done := make(chan struct{})
	parent := goCommandGone(done)
	go func() {
		for count := 0; ; {
			select {
			case received := <-signals:
				if count++; count > 1 {
					_ = file.remove()
					os.Exit(130)
				}
				cancel(errors.New(received.String()))
			case <-parent:
				parent = nil
				cancel(errors.New("go run has ended"))
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { close(done) }
}
