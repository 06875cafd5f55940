// Package anvil runs Foundry's development node for tests and controls its chain over JSON-RPC: unlocked accounts, blocks and
// reorganizations on demand, and the contracts of deploy/chains.
package anvil

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// Config configures a node. The zero value of every field but ChainID is usable.
type Config struct {
	ChainID uint64
	// SlotsInAnEpoch is how many blocks the tag safe is behind the newest block; finalized is twice as many behind. Default: 32,
	// as in anvil.
	SlotsInAnEpoch int
	// Accounts is the number of funded and unlocked accounts. Default: 10.
	Accounts int
	// Genesis is the time of the first block. Default: now.
	Genesis time.Time
}

const (
	startTimeout = 20 * time.Second
	stopGrace    = 5 * time.Second
)

// Start runs a node that mines a block for each transaction on a free port until the test ends. If anvil is missing, the test is skipped, and fails if CI=true.
func Start(tb testing.TB, config Config) *Node {
	tb.Helper()
	program, err := find()
	if errors.Is(err, errMissing) && os.Getenv("CI") != "true" {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	listening := make(chan string, 1)
	process, err := embedded.StartProcess(embedded.Command{Name: "anvil", Path: program, Args: config.args(), Output: func(line string) {
		if address, found := strings.CutPrefix(line, "Listening on "); found {
			select {
			case listening <- address:
			default:
			}
		}
	}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := process.Stop(syscall.SIGTERM, stopGrace); err != nil {
			tb.Error(err)
		}
	})
	select {
	case address := <-listening:
		return newNode(tb, config.ChainID, "http://"+address)
	case <-process.Done():
		tb.Fatalf("anvil ended while starting: %v%s", process.Err(), process.Tail())
	case <-time.After(startTimeout):
		tb.Fatalf("anvil does not listen after %s%s", startTimeout, process.Tail())
	}
	return nil
}

func (c Config) args() []string {
	args := []string{"--host", "127.0.0.1", "--port", "0", "--chain-id", strconv.FormatUint(c.ChainID, 10)}
	if c.SlotsInAnEpoch > 0 {
		args = append(args, "--slots-in-an-epoch", strconv.Itoa(c.SlotsInAnEpoch))
	}
	if c.Accounts > 0 {
		args = append(args, "--accounts", strconv.Itoa(c.Accounts))
	}
	if !c.Genesis.IsZero() {
		args = append(args, "--timestamp", strconv.FormatInt(c.Genesis.Unix(), 10))
	}
	return args
}

//go:embed package-lock.json
var lock []byte

// errMissing is returned if anvil is neither on PATH nor in the cache.
var errMissing = errors.New("anvil is missing: install Foundry, or let .ci/run install it")

// find returns the path of anvil: on PATH, or in the cache directory, where .ci/run installs it by the hash of the lock file.
func find() (string, error) {
	if path, err := exec.LookPath("anvil"); err == nil {
		return path, nil
	}
	cache, err := embedded.CacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	path := filepath.Join(cache, "node", hex.EncodeToString(sum[:8]), "node_modules", "@foundry-rs", "anvil-linux-amd64", "bin", "anvil")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", errMissing
	} else if err != nil {
		return "", fmt.Errorf("find anvil: %w", err)
	}
	return path, nil
}
