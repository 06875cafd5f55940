package faults_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// readOnlyPromised is how long after a failover a gateway may still meet a Redis that takes no writes.
const readOnlyPromised = 5 * time.Second

// startReplica starts one of master, and returns when it has everything.
func startReplica(t *testing.T, master *redisServer) *redisServer {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.address)
	replica := startRedis(t, "--replicaof", host+" "+port)
	asynctest.Eventually(t, "the replica follows", func() bool {
		return strings.Contains(replica.do(t, "INFO", "replication").(string), "master_link_status:up")
	})
	return replica
}

// startMaster starts a Redis that lets replicas in at once.
func startMaster(t *testing.T) *redisServer {
	t.Helper()
	return startRedis(t, "--repl-diskless-sync-delay", "0")
}

// startSentinel watches over master and returns when it knows of the replica.
func startSentinel(t *testing.T, master *redisServer) *redis.SentinelClient {
	t.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	host, masterPort, _ := net.SplitHostPort(master.address)
	dir := t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %s\nsentinel monitor buckets %s %s 1\n"+
		"sentinel down-after-milliseconds buckets 500\nsentinel failover-timeout buckets 3000\n", port, dir, host, masterPort)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log asynctest.Buffer
	process, err := embedded.StartProcess(embedded.Command{
		Name: "sentinel", Path: redisProgram(t), Args: []string{config, "--sentinel"},
		Output: func(line string) { fmt.Fprintln(&log, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Protocol: 2})
	t.Cleanup(func() {
		_ = sentinel.Close()
		process.Kill()
		if t.Failed() {
			t.Log("the log of the sentinel:\n" + log.String())
		}
	})
	asynctest.Eventually(t, "the sentinel knows the replica", func() bool {
		replicas, err := sentinel.Replicas(t.Context(), "buckets").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["flags"] == "slave"
	})
	return sentinel
}

// follow points the proxy to the master that the sentinel names, once it is another one, as whatever moves an address does.
func (tr *trial) follow(sentinel *redis.SentinelClient, old *redisServer) {
	tr.t.Helper()
	asynctest.Eventually(tr.t, "the sentinel promotes the replica", func() bool {
		named, err := sentinel.GetMasterAddrByName(tr.t.Context(), "buckets").Result()
		if err != nil || len(named) != 2 || net.JoinHostPort(named[0], named[1]) == old.address {
			return false
		}
		tr.proxy.pointTo(net.JoinHostPort(named[0], named[1]))
		return true
	})
}

// A master that dies is followed by its replica, which has all buckets but for the last moment's.
func TestRedisFailover(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	startReplica(t, master)
	sentinel := startSentinel(t, master)
	tr := newTrial(t, 2, master)
	tr.strike(master.kill)
	tr.end(func() { tr.follow(sentinel, master) })
	o, all := tr.finish("Redis master killed, sentinel promotes its replica", aftermath)
	o.Note = fmt.Sprintf("the address moved after %s", millis(tr.healed.Sub(tr.struck)))
	outcomes.tell(t, o)
	tr.mustKeep(o)
	all.mustAnswerAll(t)
	o.mustLimit(t, all, 1)
}

// A master that is made a replica while gateways hold connections to it refuses every write from then on. They must leave
// it for the new one by themselves.
func TestRedisSwitchedOver(t *testing.T) {
	t.Parallel()
	old := startMaster(t)
	heir := startReplica(t, old)
	tr := newTrial(t, 2, old)
	host, port, _ := net.SplitHostPort(heir.address)
	tr.strike(func() {})
	tr.end(func() {
		heir.do(t, "REPLICAOF", "NO", "ONE")
		tr.proxy.pointTo(heir.address) // old connections stay where they are
		old.do(t, "REPLICAOF", host, port)
	})
	o, all := tr.finish("Redis master made a replica, connections to it kept", aftermath)
	o.AddedP99 = -1 // it is over in a moment
	tr.mustBeAt(heir)
	outcomes.tell(t, o)
	if promise := within(readOnlyPromised); o.Recovery > promise {
		tr.judge.late("requests were decided without Redis for %s, more than %s", o.Recovery, promise)
	}
	all.mustAnswerAll(t)
	o.mustLimit(t, all, 1)
	if n := tr.watch.total(failedCalls); n == 0 {
		t.Error("no gateway has met a replica that takes no writes: this test shows nothing")
	}
}

// Behind an address that leads to a read-only replica, nobody gets an error; once it may write, it decides.
func TestRedisReadOnly(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	tr := newTrial(t, 1, master)
	replica := startReplica(t, master)
	tr.strike(func() {
		tr.proxy.pointTo(replica.address)
		tr.proxy.cut()
	})
	pass(t, outage)
	dials := tr.dialsASecond()
	tr.end(func() { replica.do(t, "REPLICAOF", "NO", "ONE") })
	o, all := tr.finish("Redis a read-only replica for a while, then promoted", aftermath)
	o.Note = fmt.Sprintf("%.1f dials/s", dials)
	outcomes.tell(t, o)
	tr.mustKeep(o)
	all.mustAnswerAll(t)
	o.mustLimit(t, all, 1)
	tr.mustBeAt(replica)
	if dials > dialsPromised {
		t.Errorf("%.1f dials a second, more than %d", dials, dialsPromised)
	}
}

// mustBeAt wants that it was this Redis which decided in the end.
func (tr *trial) mustBeAt(redis *redisServer) {
	tr.t.Helper()
	if scriptCalls(tr.t, redis) == 0 {
		tr.t.Errorf("no script was run at the new master: gateways stay with the old one")
	}
}

// scriptCalls is how many scripts a Redis has run since its start, without those it did not know.
func scriptCalls(t *testing.T, redis *redisServer) (calls int) {
	t.Helper()
	for line := range strings.SplitSeq(redis.do(t, "INFO", "commandstats").(string), "\r\n") {
		if !strings.HasPrefix(line, "cmdstat_eval:") && !strings.HasPrefix(line, "cmdstat_evalsha:") {
			continue
		}
		var ran, refused, failed int
		for field := range strings.SplitSeq(line[strings.IndexByte(line, ':')+1:], ",") {
			name, value, _ := strings.Cut(field, "=")
			number, _ := strconv.Atoi(value)
			switch name {
			case "calls":
				ran = number
			case "rejected_calls":
				refused = number
			case "failed_calls":
				failed = number
			}
		}
		calls += ran - refused - failed
	}
	return calls
}
