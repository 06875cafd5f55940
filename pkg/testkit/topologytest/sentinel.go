package topologytest

import (
	"fmt"
	"net"
	"net/url"
	"testing"

	"intents.internal/pkg/testkit/asynctest"
)

// masterName is the Sentinels' name for the master.
const masterName = "buckets"

// Sentinels are a master, its replicas and the Sentinels that monitor them. A lost master is replaced after about a second.
type Sentinels struct {
	Master   *Node
	Replicas []*Node
	Nodes    []*Node
	// URL names all Sentinels, for topology.Sentinel.
	URL string
}

// StartSentinels starts a master with replicas and three Sentinels, with a quorum of two, and returns when all have discovered
// each other.
func StartSentinels(tb testing.TB, replicas int, s Security) *Sentinels {
	tb.Helper()
	all := &Sentinels{Master: newServer(tb, s)}
	all.Master.Start()
	host, port, _ := net.SplitHostPort(all.Master.Address)
	for range replicas {
		replica := newServer(tb, s, "--replicaof", host+" "+port)
		replica.Start()
		asynctest.Eventually(tb, "the replica follows", func() bool { return replica.Info("replication", "master_link_status") == "up" })
		all.Replicas = append(all.Replicas, replica)
	}
	for range 3 {
		all.Nodes = append(all.Nodes, startSentinel(tb, all.Master, s))
	}
	for _, n := range all.Nodes {
		asynctest.Eventually(tb, "the sentinel knows the others", func() bool {
			line := n.Info("sentinel", "master0")
			return line == fmt.Sprintf("name=%s,status=ok,address=%s,slaves=%d,sentinels=%d", masterName, all.Master.Address, replicas, len(all.Nodes))
		})
	}
	u := url.URL{Scheme: scheme(s), Host: all.Nodes[0].Address, User: user(s.SentinelPassword), Path: "/0"}
	query := url.Values{"master_name": {masterName}}
	for _, n := range all.Nodes[1:] {
		query.Add("addr", n.Address)
	}
	if s.Password != "" {
		query.Set("password", s.Password)
	}
	u.RawQuery = query.Encode()
	all.URL = u.String()
	return all
}

// Named returns the address of the master that a Sentinel reports.
func (s *Sentinels) Named() string {
	named, _ := s.Nodes[0].Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).([]any)
	if len(named) != 2 {
		return ""
	}
	return net.JoinHostPort(fmt.Sprint(named[0]), fmt.Sprint(named[1]))
}

func startSentinel(tb testing.TB, master *Node, s Security) *Node {
	tb.Helper()
	host, port, _ := net.SplitHostPort(master.Address)
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 2\nsentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 3000\n",
		masterName, host, port)
	if s.Password != "" {
		text += fmt.Sprintf("sentinel auth-pass %s %s\n", masterName, s.Password)
	}
	if s.SentinelPassword != "" { // also between the Sentinels
		text += fmt.Sprintf("sentinel sentinel-pass %s\n", s.SentinelPassword)
	}
	n := newNode(tb, s.SentinelPassword, s.TLS)
	n.args = append([]string{writeConfig(tb, text), "--sentinel"}, n.args...)
	n.Start()
	n.hurry()
	return n
}

// hurry shortens a Sentinel's intervals. By default it asks servers for their role every ten seconds and announces itself every
// two, so that a master that comes back after a failover stays a master for up to twenty seconds. Redis 6 has no such command and
// keeps the defaults.
func (n *Node) hurry() {
	_ = n.Client.Do(n.tb.Context(), "SENTINEL", "DEBUG", "info-period", 1000, "publish-period", 500).Err()
}
