package topologytest

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/freeport"
)

// slots is the number of hash slots in a Redis Cluster.
const slots = 1 << 14

// Cluster is a Redis Cluster whose slots are divided evenly. A replica replaces a lost master after one to three seconds; until
// then the other masters serve their slots (cluster-require-full-coverage no).
type Cluster struct {
	// Masters and Replicas are the roles at the start: replica n follows master n modulo their number.
	Masters, Replicas []*Node
	// URL names all masters, for topology.Cluster.
	URL string

	tb testing.TB
}

// StartCluster starts a cluster of at least three masters and returns when every node is up.
func StartCluster(tb testing.TB, masters, replicas int, s Security) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	for range masters {
		c.Masters = append(c.Masters, startClusterNode(tb, s))
	}
	for range replicas {
		c.Replicas = append(c.Replicas, startClusterNode(tb, s))
	}
	for i, n := range c.Masters {
		n.Do("CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
		n.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for _, n := range c.nodes()[1:] {
		n.Do("CLUSTER", "MEET", "127.0.0.1", c.Masters[0].port, c.Masters[0].busPort())
	}
	c.awaitAll("knows all nodes and serves", func(n *Node) bool {
		info, _ := n.Do("CLUSTER", "INFO").(string)
		return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r\n", len(c.nodes())))
	})
	for i, n := range c.Replicas {
		n.Do("CLUSTER", "REPLICATE", c.Masters[i%masters].ID())
	}
	c.awaitAll("knows who follows whom", func(n *Node) bool {
		known, _ := n.Do("CLUSTER", "NODES").(string)
		return strings.Count(known, "slave ") == replicas && strings.Count(known, " connected") == len(c.nodes())
	})
	for _, n := range c.Replicas {
		asynctest.Eventually(tb, "the replica at "+n.Address+" has everything", func() bool { return n.Info("replication", "master_link_status") == "up" })
	}
	c.URL = clusterURL(c.Masters, s)
	return c
}

func clusterURL(nodes []*Node, s Security) string {
	u := url.URL{Scheme: scheme(s), Host: nodes[0].Address, User: user(s.Password)}
	query := url.Values{}
	for _, n := range nodes[1:] {
		query.Add("addr", n.Address)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func scheme(s Security) string {
	if s.TLS != nil {
		return "rediss"
	}
	return "redis"
}

func user(password string) *url.Userinfo {
	if password == "" {
		return nil
	}
	return url.UserPassword("", password)
}

func startClusterNode(tb testing.TB, s Security) *Node {
	tb.Helper()
	n := newServer(tb, s,
		"--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no",
		"--cluster-allow-replica-migration", "no", "--cluster-port", strconv.Itoa(freeport.Port(tb)),
	)
	if s.TLS != nil {
		n.args = append(n.args, "--tls-cluster", "yes")
	}
	n.Start()
	return n
}

// busPort is the port of the cluster bus.
func (n *Node) busPort() string {
	n.tb.Helper()
	port, _ := n.Do("CONFIG", "GET", "cluster-port").([]any)
	return fmt.Sprint(port[1])
}

// ID returns the node's id in its Cluster.
func (n *Node) ID() string {
	n.tb.Helper()
	return fmt.Sprint(n.Do("CLUSTER", "MYID"))
}

func (c *Cluster) nodes() []*Node { return append(append([]*Node{}, c.Masters...), c.Replicas...) }

func (c *Cluster) awaitAll(what string, is func(*Node) bool) {
	c.tb.Helper()
	for _, n := range c.nodes() {
		asynctest.Eventually(c.tb, "the Redis at "+n.Address+" "+what, func() bool { return is(n) })
	}
}

// Slot returns the hash slot of the key, as the Cluster computes it.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	slot, _ := c.Masters[0].Do("CLUSTER", "KEYSLOT", key).(int64)
	return int(slot)
}

// Owner returns the master that owned the slot at the start.
func (c *Cluster) Owner(slot int) *Node {
	for i, n := range c.Masters {
		if slot < (i+1)*slots/len(c.Masters) {
			return n
		}
	}
	return nil
}

// Begin starts migrating a slot: keys that exist stay at the source, others are redirected (ASK).
func (c *Cluster) Begin(slot int, from, to *Node) {
	c.tb.Helper()
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.ID())
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.ID())
}

// Carry migrates the slot's keys after Begin, like redis-cli.
func (c *Cluster) Carry(slot int, from, to *Node) {
	c.tb.Helper()
	for {
		keys, _ := from.Do("CLUSTER", "GETKEYSINSLOT", slot, 10).([]any)
		if len(keys) == 0 {
			return
		}
		from.Do(append([]any{"MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "REPLACE", "KEYS"}, keys...)...)
	}
}

// Finish assigns the slot to its new owner after Carry: clients that still ask the old owner are redirected (MOVED).
func (c *Cluster) Finish(slot int, from, to *Node) {
	c.tb.Helper()
	id := to.ID()
	to.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
	from.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
	for _, n := range c.Masters {
		if n != from && n != to {
			n.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
		}
	}
	// A node that took another slot before it learned of this change would use the same epoch, and both might lose their slot.
	epoch := to.epoch("cluster_my_epoch")
	c.awaitAll("has heard of the move", func(n *Node) bool { return n.epoch("cluster_current_epoch") >= epoch })
}

func (n *Node) epoch(which string) int {
	n.tb.Helper()
	info, _ := n.Do("CLUSTER", "INFO").(string)
	_, rest, _ := strings.Cut(info, which+":")
	number, _, _ := strings.Cut(rest, "\r\n")
	epoch, err := strconv.Atoi(number)
	if err != nil {
		n.tb.Fatalf("%s of %s: %v", which, n.Address, err)
	}
	return epoch
}
