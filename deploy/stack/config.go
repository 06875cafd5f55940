package stack

import (
	"io"

	"intents.internal/pkg/testkit/embedded"
)

// Config configures a stack. The zero value of every field but Data is usable.
type Config struct {
	// Data is the directory of the database, the local chains, the account with its keys, the key of webhooks, and the built services.
	// It is created if needed, and one stack at a time can use it. Required.
	Data string

	// Reset removes the database, the local chains and the account in Data first. The database of DatabaseURL is kept, and the local
	// chains with it.
	Reset bool

	// Listen is the address of the first gateway; port 0 is a free one. Default: 127.0.0.1:8080.
	Listen string

	// Gateways is the number of gateways, 1 to 64; the others listen on free ports of the same host. Default: 1.
	Gateways int

	// Cores is the number of cores, 1 to 16, with one database; every gateway uses all of them. Default: 1.
	Cores int

	// DatabaseURL and RedisURL are existing servers, which are used instead of private ones.
	DatabaseURL string
	RedisURL    string

	// ChainsFile and TokensFile are lists that are imported after the default ones. RPCFile has the RPC URLs of the chains that cores
	// watch. Default: none.
	ChainsFile string
	TokensFile string
	RPCFile    string

	// LocalChains builds and runs the two chains of deploy/chains, with their test tokens and demonstration solver. The stack is
	// ready before they are. RPCFile and the lists may name additional chains. The chains do not run on a DatabaseURL that
	// another data directory used first, because its intents are on other chains. Default: false.
	LocalChains bool

	// ChainsArgs are further arguments of the program of the local chains, such as the manners of its solver. Default: none.
	ChainsArgs []string

	// Ephemeral is for tests: the database is empty at the start, not durable, and removed at the end. Its files are in memory if
	// there is enough, and on disk with OnDisk, for tests that measure or fill it.
	Ephemeral bool
	OnDisk    bool

	// InProcessRedis uses miniredis even if a Redis server is installed.
	InProcessRedis bool

	// Root is the checkout whose services are built. Default: that of the working directory, else that of this source file.
	Root string

	// Binaries is a directory with the programs core and gateway, and chains with LocalChains. If it is set, they are not built.
	Binaries string

	// CoreEnv and GatewayEnv are settings (NAME=value) that override those of the stack.
	CoreEnv    []string
	GatewayEnv []string

	// Mail is called with each mail that cores send, one at a time; nil discards them. The mails are not delivered.
	Mail func(embedded.Mail)

	// Log receives the output of every process and the stack's log, each line with the name of its process; nil discards them.
	Log io.Writer
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
	if c.Mail == nil {
		c.Mail = func(embedded.Mail) {}
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	return c
}
