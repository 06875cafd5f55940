// Package stack runs the whole service on one machine as real processes: Postgres, Redis, cores and gateways. It builds the two
// services, migrates the database, loads chains and tokens, and maintains a demo account with one key of each kind.
//
// It can also run two local chains, which are a separate program (deploy/chains).
//
// It starts and stops the processes in order, restarts a process that exits, and leaves no process behind, also when this program
// is killed. It is for development and tests, not for production.
package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"intents.internal/pkg/testkit/embedded"
)

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

// Stack is a running stack. It is safe for concurrent use.
type Stack struct {
	config      Config
	log         *processLog
	lock        *embedded.Lock
	postgres    *embedded.Postgres
	redis       *embedded.Redis
	smtp        *embedded.SMTP
	mails       chan embedded.Mail // a copy of the first mails, for signUp
	cores       []*service
	gateways    []*service
	chains      *chainsProcess // nil without local chains
	account     account
	webhookKey  string
	mu          sync.Mutex // protects supervisors
	supervisors []*supervisor
	changed     chan struct{}

	cancel      context.CancelFunc
	supervision sync.WaitGroup
	stop        sync.Once
	stopErr     error
}

// Start starts a stack and returns when every service is ready and the demo account has its keys. ctx bounds the start only.
// A failed start leaves no process behind, and its error says what failed and what to do.
func Start(ctx context.Context, config Config) (*Stack, error) {
	running, cancel := context.WithCancel(context.Background())
	s := &Stack{config: config.withDefaults(), changed: make(chan struct{}, 1), mails: make(chan embedded.Mail, 16), cancel: cancel}
	s.log = newLog(s.config.Log)
	if err := s.start(ctx, running); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// start starts everything. Its background work ends with running.
func (s *Stack) start(ctx, running context.Context) error {
	err := s.config.checkFiles()
	if err != nil {
		return err
	}
	if err := s.lockData(); err != nil {
		return err
	}
	if s.account, err = readAccount(s.path(accountFile)); err != nil {
		return err
	}
	if s.webhookKey, err = webhookKey(s.path(webhookKeyFile)); err != nil {
		return err
	}
	if err := s.assignAddresses(ctx); err != nil {
		return err
	}
	if err := s.assignChainPorts(); err != nil {
		return err
	}
	servers, serversCtx := errgroup.WithContext(ctx)
	servers.Go(func() error { return s.build(serversCtx) })
	servers.Go(func() error { return s.startPostgres(serversCtx) })
	servers.Go(func() error { return s.startRedis(serversCtx) })
	servers.Go(func() error { return s.startSMTP(serversCtx) })
	if err := servers.Wait(); err != nil {
		return err
	}
	s.configure()
	built := s.buildChains(running)
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
	s.supervise(running)
	if s.chains != nil {
		s.configureChains()
		s.supervision.Go(func() { s.runChains(running, built) })
	}
	return nil
}

func startAll(ctx context.Context, services []*service) error {
	starting, ctx := errgroup.WithContext(ctx)
	for _, service := range services {
		starting.Go(func() error { return service.Restart(ctx) })
	}
	return starting.Wait()
}

// lockData checks the configuration, locks the data directory and resets it if configured.
func (s *Stack) lockData() error {
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
		return fmt.Errorf("create data directory: %w", err)
	}
	if s.lock, err = embedded.TryLock(s.path("lock")); errors.Is(err, embedded.ErrLocked) {
		return fmt.Errorf("the data directory %s is in use by another stack: stop that one, or choose another with --data DIR", data)
	}
	if err != nil || !s.config.Reset {
		return err
	}
	s.log.print("removing the database, the local chains and the account in " + data)
	removed := []string{"postgres", accountFile, chainsDir, chainPortsFile}
	if s.config.DatabaseURL != "" { // the database of DatabaseURL has intents on the local chains
		removed = []string{"postgres", accountFile}
	}
	for _, name := range removed {
		if err := os.RemoveAll(s.path(name)); err != nil {
			return fmt.Errorf("reset: %w", err)
		}
	}
	return nil
}

func (s *Stack) path(name string) string { return filepath.Join(s.config.Data, name) }

func (s *Stack) startPostgres(ctx context.Context) error {
	var err error
	s.postgres, err = embedded.StartPostgres(ctx, embedded.PostgresConfig{
		URL:       s.config.DatabaseURL,
		Dir:       s.path("postgres"),
		Ephemeral: s.config.Ephemeral,
		OnDisk:    s.config.OnDisk,
		Progress:  s.log.print,
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

// startSMTP starts the server that receives the cores' mails.
func (s *Stack) startSMTP(ctx context.Context) (err error) {
	s.smtp, err = embedded.StartSMTP(ctx, embedded.SMTPConfig{Received: func(m embedded.Mail) error {
		s.config.Mail(m)
		select {
		case s.mails <- m:
		default: // signUp has ended
		}
		return nil
	}})
	return err
}

// configure sets the environment of every service.
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
			"CORE_SMTP_URL=smtp://"+s.smtp.Address,
			"CORE_SMTP_FROM=Transfer Intent Service <no-reply@localhost>",
			"CORE_MIGRATE_ON_START=false",
			"CORE_RPC_FILE="+s.rpcFile(),
			"CORE_WEBHOOK_SECRET_KEY="+s.webhookKey,
			"CORE_WEBHOOK_ALLOW=127.0.0.0/8,::1/128", // webhook receivers in development on this machine
			"CORE_QUOTES_ALLOW=127.0.0.0/8,::1/128",  // and providers of quotes
		)
		if s.chains != nil && os.Getenv("CORE_QUOTES_FILE") == "" {
			core.env = append(core.env, "CORE_QUOTES_FILE="+s.path(quotesFile))
		}
		if s.chains != nil && s.config.RPCFile == "" {
			core.env = append(core.env, "CORE_CHAIN_TICK=1s") // local chains produce a block each second, and have no quota of requests
		}
		if len(s.cores) == 1 {
			core.env = append(core.env, "CORE_DRAIN_DELAY=0s") // gateways have no other core meanwhile
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
			"GATEWAY_DRAIN_DELAY=0s", // no load balancer polls its readiness
		)
		if s.redis.InProcess() {
			// miniredis shares this process with the supervisors and is often slower than the default budget of 50 ms.
			gateway.env = append(gateway.env, "GATEWAY_LIMIT_BUDGET=1s")
		}
		gateway.env = append(gateway.env, s.config.GatewayEnv...)
		gateway.path = filepath.Join(s.config.Binaries, gateway.program)
	}
}

// Stop stops all processes gracefully, local chains and gateways first and Postgres last, and returns when they have ended. It may be called
// more than once.
func (s *Stack) Stop() error {
	s.stop.Do(func() { s.stopErr = s.stopAll() })
	return s.stopErr
}

func (s *Stack) stopAll() error {
	s.cancel()
	s.supervision.Wait()
	errs := []error{s.chains.Stop(), stopEach(s.gateways), stopEach(s.cores)} // the solver is a client of the gateway
	if s.smtp != nil {
		errs = append(errs, s.smtp.Stop())
	}
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

// stopEach stops the services concurrently.
func stopEach(services []*service) error {
	var stopping errgroup.Group
	for _, service := range services {
		stopping.Go(service.Stop)
	}
	return stopping.Wait()
}
