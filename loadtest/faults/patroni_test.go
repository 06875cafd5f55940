package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/faultproxy"
	"intents.internal/pkg/testkit/freeport"
)

// patroni is three Postgres under Patroni with etcd, as deploy/postgres-failover.md has operators run them, at addresses of one machine.
type patroni struct {
	database
	nodes []*patroniNode
	dir   string
}

// patroniNode is a Postgres with its Patroni. What other nodes and etcd have of it goes through proxies, and clients reach it directly.
type patroniNode struct {
	system.Process
	name, address, rest, data string
	// peers is where the other nodes reach its Postgres, store its way to etcd.
	peers, store *faultproxy.Proxy
}

// password is that of Postgres' users in the shipped files.
const password = "SUPERUSER_PASSWORD"

// startPatroni starts a cluster with a migrated database until the test ends.
func startPatroni(t *testing.T) *patroni {
	t.Helper()
	for _, program := range []string{"patroni", "etcd"} {
		system.FindProgram(t, "on Debian: apt-get install patroni python3-etcd etcd-server", program)
	}
	dir, err := embedded.NewServerDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &patroni{dir: dir}
	store := startEtcd(t, dir)
	var hosts []string
	for n := range 3 {
		node := p.startNode(t, n+1, store)
		if n == 0 { // it makes the cluster, and the others copy it
			asynctest.Eventually(t, "the first node leads", func() bool { return system.IsOK(t, node.rest+"/primary") })
		}
		hosts = append(hosts, node.address)
	}
	asynctest.Eventually(t, "the cluster is whole", func() bool { return p.inSync(t) })
	p.url = "postgres://postgres:" + password + "@" + strings.Join(hosts, ",") + "/%s?target_session_attrs=read-write"
	admin := database{url: fmt.Sprintf(p.url, "postgres")}
	p.url = fmt.Sprintf(p.url, "intents")
	admin.execute(t, `CREATE DATABASE intents`)
	if err := p.fill(t.Context(), shared.Binaries); err != nil {
		t.Fatal(err)
	}
	p.readOwner(t)
	return p
}

// startEtcd starts one until the test ends, and returns its host:port.
func startEtcd(t *testing.T, dir string) (address string) {
	t.Helper()
	address, peers := freeport.Address(t), freeport.Address(t)
	system.StartProcess(t, embedded.Command{Path: "etcd", AsServer: true, Env: stack.Environ(), Args: []string{
		"--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", "http://" + address, "--advertise-client-urls", "http://" + address,
		"--listen-peer-urls", "http://" + peers, "--initial-advertise-peer-urls", "http://" + peers, "--initial-cluster", "default=http://" + peers,
	}})
	asynctest.Eventually(t, "etcd is healthy", func() bool { return system.IsOK(t, "http://"+address+"/health") })
	return address
}

// startNode starts a node with the configuration that is shipped, but for addresses and directories.
func (p *patroni) startNode(t *testing.T, number int, store string) *patroniNode {
	t.Helper()
	node := &patroniNode{name: fmt.Sprintf("postgres-%d", number), address: freeport.Address(t), data: filepath.Join(p.dir, strconv.Itoa(number))}
	rest := freeport.Address(t)
	node.rest, node.peers, node.store = "http://"+rest, faultproxy.Start(t, node.address), faultproxy.Start(t, store)
	programs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(programs) == 0 {
		t.Fatalf("Debian's Postgres is not installed: %v", err)
	}
	config := system.Shipped(t, "patroni/patroni.yml", map[string]string{
		"name: postgres-1": "name: " + node.name, "  listen: 10.0.0.11:8008": "  listen: " + rest, "connect_address: 10.0.0.11:8008": "connect_address: " + rest,
		"  listen: 10.0.0.11:5432": "  listen: " + node.address, "connect_address: 10.0.0.11:5432": "connect_address: " + node.peers.Address,
		"[10.0.0.21:2379, 10.0.0.22:2379, 10.0.0.23:2379]": "[" + node.store.Address + "]\n  use_proxies: true", // or it asks etcd for its own address
		"data_dir: /var/lib/postgresql/15/main":            "data_dir: " + node.data,
		"bin_dir: /usr/lib/postgresql/15/bin":              "bin_dir: " + programs[len(programs)-1] + "\n  pgpass: " + filepath.Join(p.dir, node.name+".pgpass") + "\n  parameters: {unix_socket_directories: " + p.dir + "}",
		"replicator 10.0.0.0/24":                           "replicator 127.0.0.0/8", "all all 10.0.0.0/24": "all all 127.0.0.0/8",
	})
	path := filepath.Join(p.dir, node.name+".yml")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	node.Prepare(t, embedded.Command{Path: "patroni", Args: []string{path}, Env: stack.Environ(), AsServer: true, OrphanSignal: syscall.SIGTERM})
	t.Cleanup(func() { node.kill(t) }) // before the process's own, which would leave Postgres
	node.Start(t)
	p.nodes = append(p.nodes, node)
	return node
}

// kill ends Patroni and Postgres at once, as a power cut does.
func (n *patroniNode) kill(t *testing.T) {
	t.Helper()
	n.Kill()
	n.killPostgres(t)
}

// killPostgres ends Postgres alone.
func (n *patroniNode) killPostgres(t *testing.T) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
	if err != nil {
		return // it has ended
	}
	line, _, _ := strings.Cut(string(file), "\n")
	if pid, err := strconv.Atoi(line); err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Logf("Postgres %s of %s had ended", line, n.name)
	}
}

// isolate cuts a node from the others and from etcd. Clients reach it as before.
func (n *patroniNode) isolate() {
	n.peers.Refuse()
	n.store.Refuse()
}

func (n *patroniNode) heal() {
	n.peers.Heal()
	n.store.Heal()
}

// leader is the node that says that it leads, nil while none does.
func (p *patroni) leader(t *testing.T) *patroniNode {
	t.Helper()
	return p.leaderBut(t, nil)
}

// leaderBut is the leader among the nodes but this one, nil if none of them leads.
func (p *patroni) leaderBut(t *testing.T, not *patroniNode) *patroniNode {
	t.Helper()
	for _, node := range p.nodes {
		if node != not && system.IsOK(t, node.rest+"/primary") {
			return node
		}
	}
	return nil
}

// awaitLeader waits until a node other than this one leads.
func (p *patroni) awaitLeader(t *testing.T, not *patroniNode) (leader *patroniNode) {
	t.Helper()
	asynctest.Eventually(t, "another node leads", func() bool {
		leader = p.leader(t)
		return leader != nil && leader != not
	})
	return leader
}

// inSync reports whether one node leads, another is its synchronous standby, and a third one streams.
func (p *patroni) inSync(t *testing.T) bool {
	t.Helper()
	answer, err := system.NewClient(t, p.nodes[0].rest, "").Try(http.MethodGet, "/cluster", nil)
	if err != nil {
		return false
	}
	var cluster struct {
		Members []struct{ Role, State string }
	}
	if json.Unmarshal(answer.Body, &cluster) != nil {
		return false
	}
	roles := map[string]int{}
	for _, member := range cluster.Members {
		if member.State == "running" || member.State == "streaming" {
			roles[member.Role]++
		}
	}
	return roles["leader"] == 1 && roles["sync_standby"] == 1 && roles["replica"] == 1
}

// switchOver has the leader give up its place, as an operator does for maintenance.
func (p *patroni) switchOver(t *testing.T) (old, fresh *patroniNode) {
	t.Helper()
	old = p.leader(t)
	answer := system.NewClient(t, old.rest, "").Do(http.MethodPost, "/switchover", map[string]string{"leader": old.name})
	if answer.Status != http.StatusOK {
		t.Fatalf("switch over: %d %s", answer.Status, answer.Body)
	}
	return old, p.awaitLeader(t, old)
}
