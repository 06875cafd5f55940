// Package topologytest runs real Redis Clusters, and real masters with replicas and Sentinels, for tests. They keep their data in
// temporary directories and stop at the end of the test.
package topologytest

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/freeport"
)

// Security is the authentication and TLS of the servers; the zero value is neither passwords nor TLS.
type Security struct {
	// Password is the servers' password, SentinelPassword that of the Sentinels.
	Password, SentinelPassword string
	// TLS is the certificate of all servers. They require no client certificate.
	TLS *Certificate
}

// Node is one Redis or one Sentinel. Its methods fail the test on errors.
type Node struct {
	// Address is its host:port.
	Address string
	// Client connects to this node only.
	Client *redis.Client

	tb      testing.TB
	port    int
	args    []string
	process *embedded.Process
	log     asynctest.Buffer
}

// Start starts or restarts the node, and returns when it answers.
func (n *Node) Start() {
	n.tb.Helper()
	process, err := embedded.StartProcess(embedded.Command{Name: "redis", Path: program(n.tb), Args: n.args, Output: func(line string) { fmt.Fprintln(&n.log, line) }})
	if err != nil {
		n.tb.Fatal(err)
	}
	n.process = process
	asynctest.Eventually(n.tb, "the Redis at "+n.Address+" answers", func() bool { return n.Client.Ping(n.tb.Context()).Err() == nil })
}

// Kill ends the node like a crash.
func (n *Node) Kill() { n.process.Kill() }

// Pause suspends the node until Resume: it accepts connections and never answers.
func (n *Node) Pause() { n.signal(syscall.SIGSTOP) }

// Resume continues a suspended node.
func (n *Node) Resume() { n.signal(syscall.SIGCONT) }

func (n *Node) signal(s os.Signal) {
	n.tb.Helper()
	if err := n.process.Signal(s); err != nil {
		n.tb.Fatal(err)
	}
}

// Do runs one command on the node.
func (n *Node) Do(command ...any) any {
	n.tb.Helper()
	reply, err := n.Client.Do(n.tb.Context(), command...).Result()
	if err != nil {
		n.tb.Fatalf("%s: %v: %v", n.Address, command, err)
	}
	return reply
}

// Info returns one field of INFO, empty if the node does not answer: a Sentinel closes the connections of a node that it makes a
// replica.
func (n *Node) Info(section, field string) string {
	n.tb.Helper()
	text, err := n.Client.Info(n.tb.Context(), section).Result()
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if value, is := strings.CutPrefix(line, field+":"); is {
			return value
		}
	}
	return ""
}

func newNode(tb testing.TB, password string, certificate *Certificate, args ...string) *Node {
	tb.Helper()
	dir, port := tb.TempDir(), freeport.Port(tb)
	n := &Node{tb: tb, port: port, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	listen := []string{"--port", strconv.Itoa(port)}
	options := &redis.Options{Addr: n.Address, Protocol: 2, Password: password, DialTimeout: time.Second, MaxRetries: -1}
	if certificate != nil {
		listen = []string{
			"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-cert-file", certificate.cert, "--tls-key-file", certificate.key,
			"--tls-ca-cert-file", certificate.Authority, "--tls-auth-clients", "no", "--tls-replication", "yes",
		}
		options.TLSConfig = &tls.Config{RootCAs: certificate.pool, MinVersion: tls.VersionTLS12}
	}
	n.args = append(append([]string{"--bind", "127.0.0.1", "--dir", dir, "--loglevel", "notice"}, listen...), args...)
	if password != "" {
		n.args = append(n.args, "--requirepass", password)
	}
	n.Client = redis.NewClient(options)
	tb.Cleanup(func() {
		_ = n.Client.Close()
		if n.process != nil {
			n.process.Kill()
		}
		if tb.Failed() {
			tb.Logf("the log of the Redis at %s:\n%s", n.Address, n.log.String())
		}
	})
	return n
}

// newServer starts a Redis that stores nothing on disk and accepts replicas at once.
func newServer(tb testing.TB, s Security, args ...string) *Node {
	tb.Helper()
	args = append([]string{"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"}, args...)
	if s.Password != "" {
		args = append(args, "--masterauth", s.Password)
	}
	return newNode(tb, s.Password, s.TLS, args...)
}

// program finds the server binary. miniredis cannot be part of a Cluster.
func program(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		tb.Fatal("no redis-server or valkey-server on PATH")
	}
	tb.Skip("no redis-server or valkey-server on PATH")
	return ""
}

// writeConfig writes a config file that Redis may rewrite.
func writeConfig(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "redis.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// IsScript reports whether commands that were sent to a node have a call of a script among them.
func IsScript(commands []byte) bool {
	return bytes.Contains(bytes.ToLower(commands), []byte("\r\neval"))
}
