// Chains runs two EVM chains for development in one process, eip155:31337 and eip155:31338, each with HTTP JSON-RPC, the
// settlers of oif-v1/StandardOrder, an oracle and test tokens. Its keys are public: nothing on these chains has a value.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	gethlog "github.com/ethereum/go-ethereum/log"

	"intents.internal/deploy/chains/solver"
)

// chainIDs are the chains, in the order of -listen.
var chainIDs = [2]uint32{31337, 31338}

type config struct {
	Data    string   // directory of the state
	Listen  []string // address of each chain's JSON-RPC
	CORS    []string // origins that may call from a browser
	Gateway string   // URL of the API for the solver; empty: no solver
	APIKey  string   // the solver's key
	Quotes  string   // address of the solver's quotes
	Manners solver.Manners
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// run serves until ctx ends or a part fails. It logs to out, including the error.
func run(ctx context.Context, args []string, out io.Writer) error {
	config, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	handler := slog.NewJSONHandler(out, nil).WithAttrs([]slog.Attr{slog.String("service", "chains")})
	log := slog.New(handler)
	gethlog.SetDefault(gethlog.NewLogger(errorsOnly{handler}))
	if err := serve(ctx, config, log); err != nil {
		log.Error("chains failed", "error", err)
		return err
	}
	log.Info("stopped")
	return nil
}

func parse(args []string, out io.Writer) (c config, err error) {
	flags := flag.NewFlagSet("chains", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&c.Data, "data", "", "directory of the state, created if it is missing (required)")
	listen := flags.String("listen", "127.0.0.1:8545,127.0.0.1:8546", "addresses of the JSON-RPC of 31337 and 31338; port 0 is any free one")
	cors := flags.String("cors", "", "origins that may call from a browser, separated by commas")
	flags.StringVar(&c.Gateway, "gateway", "", "URL of the API whose orders a solver fills; its key is in CHAINS_API_KEY")
	flags.StringVar(&c.Quotes, "quotes", "127.0.0.1:0", "address at which the solver answers requests for quotes (POST /api/v1/quotes); port 0 is any free one")
	mannersFlags(flags, &c.Manners)
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	c.Listen, c.CORS, c.APIKey = strings.Split(*listen, ","), list(*cors), os.Getenv("CHAINS_API_KEY")
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.Data == "":
		err = errors.New("-data is required")
	case len(c.Listen) != len(chainIDs):
		err = fmt.Errorf("-listen needs %d addresses", len(chainIDs))
	case (c.Gateway == "") != (c.APIKey == ""):
		err = errors.New("the solver needs both -gateway and CHAINS_API_KEY")
	}
	if err != nil {
		fmt.Fprintln(out, err)
		flags.Usage()
	}
	return c, err
}

// mannersFlags are how the solver treats orders and requests.
func mannersFlags(flags *flag.FlagSet, m *solver.Manners) {
	flags.BoolVar(&m.JudgesOnce, "judge-once", false, "the solver tries no order again that was refused, and looks at none that was opened before the start")
	flags.DurationVar(&m.MinExpiry, "min-expiry", 0, "the solver leaves orders alone whose deadline is nearer")
	flags.Uint64Var(&m.Finality, "finality", 0, "the solver waits until an opening is so many blocks deep")
	flags.BoolVar(&m.FailsUnsupported, "fail-unsupported", false, "the solver answers 500 to a request for quotes of a token that it has no price of")
	flags.Int64Var(&m.PriceMove, "price-move", 0, "the solver pays so many ten-thousandths less than it has quoted")
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func serve(ctx context.Context, config config, log *slog.Logger) (err error) {
	var quotes net.Listener
	urls := []any{}
	if config.Gateway != "" {
		if quotes, err = (&net.ListenConfig{}).Listen(ctx, "tcp", config.Quotes); err != nil {
			return fmt.Errorf("-quotes: %w", err)
		}
		defer quotes.Close()
		urls = append(urls, "quotes", "http://"+quotes.Addr().String())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var chains []*chain
	var parts sync.WaitGroup
	defer func() {
		cancel(nil)
		parts.Wait()
		for _, c := range chains {
			err = errors.Join(err, c.close())
		}
	}()
	start := func(name string, part func(context.Context) error) {
		parts.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	for i, id := range chainIDs {
		c, err := newChain(id, config.Data, config.Listen[i], config.CORS)
		if err != nil {
			return fmt.Errorf("start chain %d: %w", id, err)
		}
		chains = append(chains, c)
		start("produce blocks", c.produceBlocks)
	}
	for _, c := range chains {
		if err := deploy(ctx, c); err != nil {
			return fmt.Errorf("deploy the contracts of chain %d: %w", c.id, err)
		}
	}
	for _, r := range relays(chains, log) {
		start("relay fills", r.run)
	}
	if config.Gateway != "" {
		start("solve", func(ctx context.Context) error { return runSolver(ctx, config, quotes, chains, log) })
	}
	log.Info("ready", append(urls, "chain_31337", chains[0].url(), "chain_31338", chains[1].url())...)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// errorsOnly drops geth's warnings, which report faults of clients and states that are normal here.
type errorsOnly struct{ slog.Handler }

func (e errorsOnly) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}

func (e errorsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorsOnly{e.Handler.WithAttrs(attrs)}
}

func (e errorsOnly) WithGroup(name string) slog.Handler { return errorsOnly{e.Handler.WithGroup(name)} }
