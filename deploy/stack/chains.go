package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"intents.internal/pkg/testkit/embedded"
)

// Chains is the name of the process that runs the local chains.
const Chains = "chains"

// The files of the local chains in the data directory. They belong to the database, which stores intents on these chains.
const (
	chainsDir      = "chains"
	chainPortsFile = "chain-ports.json"
	rpcFile        = "rpc.json"
	quotesFile     = "quotes.json"
	chainListFile  = "local-chains.json"
)

// localChains are the ids and default ports of the local chains.
var localChains = []struct {
	id   string
	port int
}{{"31337", 8545}, {"31338", 8546}}

// quotesPort is the default port at which the solver of the local chains answers requests for quotes.
const quotesPort = 8547

// LocalChain is a local chain of a running stack.
type LocalChain struct {
	ID     string // the EIP-155 number, such as 31337
	RPCURL string
}

// assignChainPorts chooses the addresses of the local chains, those of the last run if they are free, and writes them to the RPC
// file of the cores.
func (s *Stack) assignChainPorts() error {
	if !s.config.LocalChains {
		return nil
	}
	kept := map[string]int{}
	text, err := os.ReadFile(s.path(chainPortsFile))
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the ports of the local chains in %s (start over with --reset): %w", s.path(chainPortsFile), err)
	}
	s.chains = &chainsProcess{log: s.log.writer(Chains)}
	for _, chain := range localChains {
		port, err := chainPort(kept[chain.id], chain.port)
		if err != nil {
			return fmt.Errorf("choose a port for the local chain %s: %w", chain.id, err)
		}
		kept[chain.id] = port
		s.chains.chains = append(s.chains.chains, LocalChain{chain.id, "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	}
	port, err := chainPort(kept["quotes"], quotesPort)
	if err != nil {
		return fmt.Errorf("choose a port for the quotes of the local chains: %w", err)
	}
	kept["quotes"] = port
	s.chains.quotes = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if text, err = json.Marshal(kept); err != nil {
		return err
	}
	if err := writePrivate(s.path(chainPortsFile), append(text, '\n')); err != nil {
		return fmt.Errorf("store the ports of the local chains: %w", err)
	}
	if err := s.writeQuotesFile(); err != nil {
		return err
	}
	return s.writeRPCFile()
}

// writeQuotesFile names the solver of the local chains as a provider of quotes, which answers once the chains run.
func (s *Stack) writeQuotesFile() error {
	text, err := json.Marshal([]map[string]any{{
		"name": "local-solver", "kind": "oif", "url": "http://" + s.chains.quotes, "environment": "test", "deployment": "local",
		"accountRequestsPerMinute": 60_000, // it has no limit of its own
	}})
	if err != nil {
		return err
	}
	if err := writePrivate(s.path(quotesFile), append(text, '\n')); err != nil {
		return fmt.Errorf("write the providers of quotes: %w", err)
	}
	return nil
}

// chainPort returns the first of the wanted ports that is free, or any free one.
func chainPort(wanted ...int) (int, error) {
	for _, port := range wanted {
		if port == 0 {
			continue
		}
		if free, err := embedded.ReservePort("", port); free || err != nil {
			return port, err
		}
	}
	return embedded.FreePort("")
}

// writeRPCFile writes the URLs of the local chains to a file of the data directory, merged with the configured file, which takes
// precedence.
func (s *Stack) writeRPCFile() error {
	providers := map[string]any{}
	for _, chain := range s.chains.chains {
		providers["eip155:"+chain.ID] = []any{map[string]any{"url": chain.RPCURL, "requestsPerSecond": 1000}}
	}
	if s.config.RPCFile != "" {
		text, err := os.ReadFile(s.config.RPCFile)
		if err != nil {
			return fmt.Errorf("read the file of RPC URLs: %w", err)
		}
		if err := json.Unmarshal(text, &providers); err != nil {
			return fmt.Errorf("read the file of RPC URLs: %w", err)
		}
	}
	text, err := json.Marshal(providers)
	if err != nil {
		return err
	}
	if err := writePrivate(s.path(rpcFile), append(text, '\n')); err != nil {
		return fmt.Errorf("write the RPC URLs of the local chains: %w", err)
	}
	return nil
}

// rpcFile is the path of the cores' file of RPC URLs.
func (s *Stack) rpcFile() string {
	if s.chains == nil {
		return s.config.RPCFile
	}
	return s.path(rpcFile)
}

// configureChains sets the command of the local chains. The account must have its keys already.
func (s *Stack) configureChains() {
	var addresses, origins []string
	for _, chain := range s.chains.chains {
		addresses = append(addresses, strings.TrimPrefix(chain.RPCURL, "http://"))
	}
	for _, url := range urls(s.gateways) {
		origins = append(origins, url)
		if name := strings.Replace(url, "//localhost:", "//127.0.0.1:", 1); name != url {
			origins = append(origins, name)
		}
	}
	s.chains.path = filepath.Join(s.config.Binaries, "chains")
	s.chains.env = append(Environ(), "CHAINS_API_KEY="+s.account.TestKey)
	s.chains.args = append([]string{
		"-data", s.path(chainsDir), "-listen", strings.Join(addresses, ","),
		"-cors", strings.Join(origins, ","), "-gateway", s.gateways[0].url(), "-quotes", s.chains.quotes,
	}, s.config.ChainsArgs...)
}

// errOtherChains is returned if the database belongs to the local chains of another data directory. Core would take new chains
// for a reorganization of these.
var errOtherChains = errors.New("the database has the account of another data directory, and intents on that one's local chains: use its " +
	"--data DIR, another LOCAL_DATABASE_URL, or --no-chains")

// checkChainsDatabase returns errOtherChains for a configured database that another data directory used first, unless this one
// has chains as well. The account must have its keys already.
func (s *Stack) checkChainsDatabase() error {
	if s.config.DatabaseURL == "" || s.account.Email == firstEmail {
		return nil
	}
	if _, err := os.Stat(s.path(chainsDir)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return errOtherChains
}

// firstStarts is how often the start of the local chains is tried before the stack continues without them.
const firstStarts = 3

// runChains starts the local chains once they are built. If that fails, the stack continues without them, and the log has the
// reason.
func (s *Stack) runChains(ctx context.Context, built <-chan error) {
	err := s.checkChainsDatabase()
	if err == nil {
		err = <-built
	}
	if err == nil {
		for range firstStarts {
			if err = s.chains.Restart(ctx); err == nil || ctx.Err() != nil {
				break
			}
		}
	}
	if ctx.Err() != nil {
		return
	}
	defer s.signalChange()
	if err != nil {
		s.chains.fail(err)
		s.log.print("there are no local chains: " + oneLine(err))
		return
	}
	s.watch(ctx, Chains, s.chains)
	s.log.print("the local chains are ready")
}

// oneLine returns the first line of an error and the last line of the process output in it.
func oneLine(err error) string {
	first, output, found := strings.Cut(err.Error(), "\n")
	if !found {
		return first
	}
	last := strings.TrimSpace(output[strings.LastIndexByte(output, '\n')+1:])
	var entry struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(last), &entry) == nil && entry.Error != "" {
		last = entry.Error
	}
	return first + ": " + last
}
