// Package stack runs the whole service on one machine as real processes: Postgres, Redis, core and its gateways. It builds
// the two services, migrates the database, loads chains and tokens, and keeps a demo account with one key of each kind.
//
// It owns the order in which things start and stop, starts again what dies, and leaves no process behind, however this
// program ends. It is for development and for tests; it is not how to run the service for others.
package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"intents.internal/pkg/embedded"
)

// Config says what to run. The zero value of every field but Data is usable.
type Config struct {
	// Data is the directory for everything that is kept: the database, the account with its keys, the built services. It is
	// made when missing, and one stack at a time can use it. Required.
	Data string

	// Reset removes the database and the account in Data first. A database that was handed in is not touched.
	Reset bool

	// Listen is where the first gateway listens; port 0 takes a free one. Default: 127.0.0.1:8080.
	Listen string

	// Gateways is the number of gateways, 1 to 64; the others listen on free ports of the same host. Default: 1.
	Gateways int

	// Cores is the number of cores, 1 to 16, on one database; every gateway uses all of them. Default: 1.
	Cores int

	// DatabaseURL and RedisURL are used instead of private servers.
	DatabaseURL string
	RedisURL    string

	// Ephemeral is for tests: the database is empty at the start, fast, unsafe on power loss, and removed at the end. It is
	// kept in memory where there is plenty, unless OnDisk says otherwise, for what measures it or fills it.
	Ephemeral bool
	OnDisk    bool

	// InProcessRedis uses miniredis even where a Redis server is installed.
	InProcessRedis bool

	// Root is the checkout whose services are built. Default: the one around the working directory, else the one that this
	// package was compiled from.
	Root string

	// Binaries is a directory with the programs core and gateway, which are then not built.
	Binaries string

	// CoreEnv and GatewayEnv are further settings (NAME=value), which win over the stack's own.
	CoreEnv    []string
	GatewayEnv []string

	// Log receives every process's output and the stack's own words, each line led by who says it; nil discards them.
	Log io.Writer
}

// Names of the processes, for Kill, Restart and AwaitReady. Core is the first core; the others are named by CoreName, and
// gateways by GatewayName.
const (
	Postgres = "postgres"
	Redis    = "redis"
	Core     = "core"
)

// CoreName is the name of the n-th core, counted from 1.
func CoreName(n int) string {
	if n == 1 {
		return Core
	}
	return Core + "-" + strconv.Itoa(n)
}

// GatewayName is the name of the n-th gateway, counted from 1.
func GatewayName(n int) string { return "gateway-" + strconv.Itoa(n) }

// Stack is a running stack. Its methods may be called concurrently.
type Stack struct {
	config   Config
	log      *journal
	lock     *embedded.Lock
	postgres *embedded.Postgres
	redis    *embedded.Redis
	cores    []*service
	gateways []*service
	account  account
	members  []*member
	changed  chan struct{}

	cancel      context.CancelFunc
	supervision sync.WaitGroup
	stop        sync.Once
	stopErr     error
}

// Start starts everything and returns when every service is ready and the demo account has its keys. ctx bounds the start
// only. A failed start leaves no process behind, and its error says what failed and what to do.
func Start(ctx context.Context, config Config) (*Stack, error) {
	s := &Stack{config: config.withDefaults(), changed: make(chan struct{}, 1), cancel: func() {}}
	s.log = newJournal(s.config.Log)
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:8080"
	}
	if c.Gateways == 0 {
		c.Gateways = 1
	}
	if c.Cores == 0 {
		c.Cores = 1
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	return c
}

func (s *Stack) start(ctx context.Context) error {
	if err := s.claim(); err != nil {
		return err
	}
	var err error
	if s.account, err = readAccount(s.path(accountFile)); err != nil {
		return err
	}
	if err := s.plan(ctx); err != nil {
		return err
	}
	servers, serversCtx := errgroup.WithContext(ctx)
	servers.Go(func() error { return s.build(serversCtx) })
	servers.Go(func() error { return s.startPostgres(serversCtx) })
	servers.Go(func() error { return s.startRedis(serversCtx) })
	if err := servers.Wait(); err != nil {
		return err
	}
	s.configure()
	if err := s.loadDatabase(ctx); err != nil {
		return err
	}
	if err := startAll(ctx, s.cores); err != nil {
		return err
	}
	if err := startAll(ctx, s.gateways); err != nil {
		return err
	}
	if err := s.ensureAccount(ctx); err != nil {
		return err
	}
	s.supervise()
	return nil
}

func startAll(ctx context.Context, services []*service) error {
	starting, ctx := errgroup.WithContext(ctx)
	for _, service := range services {
		starting.Go(func() error { return service.Restart(ctx) })
	}
	return starting.Wait()
}

// claim takes the data directory for this stack alone.
func (s *Stack) claim() error {
	if s.config.Gateways < 1 || s.config.Gateways > 64 {
		return fmt.Errorf("the number of gateways must be 1 to 64, not %d", s.config.Gateways)
	}
	if s.config.Cores < 1 || s.config.Cores > 16 {
		return fmt.Errorf("the number of cores must be 1 to 16, not %d", s.config.Cores)
	}
	data, err := filepath.Abs(s.config.Data)
	if err != nil || s.config.Data == "" {
		return errors.Join(errors.New("a data directory is required"), err)
	}
	s.config.Data = data
	if err := os.MkdirAll(data, 0o711); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if s.lock, err = embedded.TryLock(s.path("lock")); errors.Is(err, embedded.ErrLocked) {
		return fmt.Errorf("the data directory %s is in use by another stack: stop that one, or choose another with --data DIR", data)
	}
	if err != nil || !s.config.Reset {
		return err
	}
	s.log.say("removing the database and the account in " + data)
	return errors.Join(os.RemoveAll(s.path("postgres")), os.RemoveAll(s.path(accountFile)))
}

func (s *Stack) path(name string) string { return filepath.Join(s.config.Data, name) }

func (s *Stack) startPostgres(ctx context.Context) error {
	var err error
	s.postgres, err = embedded.StartPostgres(ctx, embedded.PostgresConfig{
		URL:       s.config.DatabaseURL,
		Dir:       s.path("postgres"),
		Ephemeral: s.config.Ephemeral,
		OnDisk:    s.config.OnDisk,
		Log:       s.log.writer(Postgres),
	})
	return err
}

func (s *Stack) startRedis(ctx context.Context) error {
	var err error
	s.redis, err = embedded.StartRedis(ctx, embedded.RedisConfig{
		URL:       s.config.RedisURL,
		InProcess: s.config.InProcessRedis,
		Log:       s.log.writer(Redis),
	})
	return err
}

// configure gives every service its settings.
func (s *Stack) configure() {
	secret := rand.Text() + rand.Text()
	for _, core := range s.cores {
		core.env = append(Environ(),
			"CORE_LISTEN="+core.listen,
			"CORE_OPS_LISTEN="+core.ops,
			"CORE_DATABASE_URL="+s.postgres.URL,
			"CORE_REDIS_URL="+s.redis.URL,
			"CORE_GATEWAY_SECRET="+secret,
			"CORE_PUBLIC_URL="+s.gateways[0].url(),
			"CORE_SIGN_UP=open",
			"CORE_MIGRATE_ON_START=false",
		)
		if len(s.cores) == 1 {
			core.env = append(core.env, "CORE_DRAIN_DELAY=0s") // there is none to turn to
		}
		core.env = append(core.env, s.config.CoreEnv...)
		core.args = []string{"serve"}
		core.path = filepath.Join(s.config.Binaries, core.program)
	}
	for _, gateway := range s.gateways {
		gateway.env = append(Environ(),
			"GATEWAY_LISTEN="+gateway.listen,
			"GATEWAY_OPS_LISTEN="+gateway.ops,
			"GATEWAY_CORE_URL="+strings.Join(urls(s.cores), ","),
			"GATEWAY_CORE_SECRET="+secret,
			"GATEWAY_REDIS_URL="+s.redis.URL,
			"GATEWAY_DRAIN_DELAY=0s", // no balancer looks whether it is ready
		)
		if s.redis.InProcess() {
			// It shares this process with all its supervision; a gateway that gave up on it after 50 ms would count alone.
			gateway.env = append(gateway.env, "GATEWAY_LIMIT_BUDGET=1s")
		}
		gateway.env = append(gateway.env, s.config.GatewayEnv...)
		gateway.path = filepath.Join(s.config.Binaries, gateway.program)
	}
}

// loadDatabase brings the schema, the chains and the tokens up to date.
func (s *Stack) loadDatabase(ctx context.Context) error {
	data := filepath.Join(s.config.Root, "deploy", "data")
	for _, args := range [][]string{
		{"migrate"},
		{"chains", "import", filepath.Join(data, "chains.json")},
		{"tokens", "import", filepath.Join(data, "tokens.json")},
	} {
		if err := s.cores[0].job(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops everything, gateways first and Postgres last, each with the time to finish what it is doing. It returns when
// nothing runs any more. Calling it again is fine.
func (s *Stack) Stop() error {
	s.stop.Do(func() { s.stopErr = s.stopAll() })
	return s.stopErr
}

func (s *Stack) stopAll() error {
	s.cancel()
	s.supervision.Wait()
	errs := []error{stopEach(s.gateways), stopEach(s.cores)}
	if s.redis != nil {
		errs = append(errs, s.redis.Stop())
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Stop())
	}
	if s.lock != nil {
		s.lock.Unlock()
	}
	return errors.Join(errs...)
}

// stopEach stops the services side by side.
func stopEach(services []*service) error {
	var stopping errgroup.Group
	for _, service := range services {
		stopping.Go(service.Stop)
	}
	return stopping.Wait()
}
