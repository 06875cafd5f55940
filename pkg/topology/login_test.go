package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/asynctest"
	"intents.internal/pkg/topology"
	"intents.internal/pkg/topology/topologytest"
)

// renew is what becomes of the passwords in these tests: the servers' and the Sentinels'.
var renew = strings.NewReplacer("hunter2", "hunter4", "hunter3", "hunter5")

// guarded are servers with passwords, and clients of theirs.
type guarded struct {
	servers, sentinels []*topologytest.Node
	urls               map[topology.Mode]string
}

func startGuardedCluster(t *testing.T) guarded {
	t.Helper()
	c := topologytest.StartCluster(t, 1, 0, topologytest.Security{Password: "hunter2"})
	return guarded{servers: c.Masters, urls: map[topology.Mode]string{topology.Cluster: c.URL}}
}

func startGuardedSentinels(t *testing.T) guarded {
	t.Helper()
	s := topologytest.StartSentinels(t, 1, topologytest.Security{Password: "hunter2", SentinelPassword: "hunter3"})
	return guarded{
		servers: append([]*topologytest.Node{s.Master}, s.Replicas...), sentinels: s.Nodes,
		urls: map[topology.Mode]string{topology.Sentinel: s.URL, topology.Single: "redis://:hunter2@" + s.Master.Address + "/0"},
	}
}

// each runs a command on all of these.
func each(nodes []*topologytest.Node, command ...any) {
	for _, n := range nodes {
		n.Do(command...)
	}
}

// takeBoth has all of them take the new passwords as well, and use these among themselves.
func (g guarded) takeBoth() {
	each(g.servers, "ACL", "SETUSER", "default", ">hunter4")
	each(g.servers, "CONFIG", "SET", "masterauth", "hunter4")
	each(g.sentinels, "ACL", "SETUSER", "default", ">hunter5")
	each(g.sentinels, "SENTINEL", "CONFIG", "SET", "sentinel-pass", "hunter5")
	each(g.sentinels, "SENTINEL", "SET", "buckets", "auth-pass", "hunter4")
}

func (g guarded) refuseOld() {
	each(g.servers, "ACL", "SETUSER", "default", "<hunter2")
	each(g.sentinels, "ACL", "SETUSER", "default", "<hunter3")
}

// closeAll has them close all connections but those of replication and of this test.
func (g guarded) closeAll() {
	for _, kind := range []string{"normal", "pubsub"} {
		each(slices.Concat(g.servers, g.sentinels), "CLIENT", "KILL", "TYPE", kind)
	}
}

// accepted is how many connections the servers have taken so far.
func (g guarded) accepted() (all string) {
	for _, n := range g.servers {
		all += n.Info("stats", "total_connections_received") + " "
	}
	return all
}

// Passwords of all kinds are replaced while clients are in use: what is open stays, what is opened later bears the new ones.
func TestLoginChanges(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) guarded{"cluster": startGuardedCluster, "sentinels": startGuardedSentinels} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t)
			fresh, stale := map[topology.Mode]redis.UniversalClient{}, map[topology.Mode]redis.UniversalClient{}
			logins := map[topology.Mode]*topology.Login{}
			for mode, url := range g.urls {
				logins[mode] = new(topology.Login)
				fresh[mode], stale[mode] = openAs(t, mode, url, logins[mode]), openAs(t, mode, url, nil)
			}
			allServe := func() error {
				for mode, client := range fresh {
					if err := topology.Serving(t.Context(), client); err != nil {
						return fmt.Errorf("%s: %w", mode, err)
					}
				}
				return nil
			}
			if err := allServe(); err != nil {
				t.Fatal(err)
			}
			for _, client := range stale {
				if err := topology.Serving(t.Context(), client); err != nil {
					t.Fatal(err)
				}
			}

			g.takeBoth()
			for mode, login := range logins {
				if err := login.Set(mode, renew.Replace(g.urls[mode])); err != nil {
					t.Fatal(err)
				}
			}
			g.refuseOld()
			before := g.accepted()
			if err := allServe(); err != nil {
				t.Errorf("on connections that are open: %v", err)
			}
			if after := g.accepted(); name == "cluster" && after != before { // Sentinels connect when they like
				t.Errorf("connections were made: %s before, %s after", before, after)
			}
			g.closeAll()
			asynctest.Eventually(t, "new connections are made", func() bool { return allServe() == nil })
			for mode, client := range stale {
				if err := topology.Serving(t.Context(), client); err == nil {
					t.Errorf("%s: the old password is good for a connection", mode)
				}
			}
		})
	}
}

func openAs(t *testing.T, mode topology.Mode, url string, login *topology.Login) redis.UniversalClient {
	t.Helper()
	options := bounds
	options.Login = login
	client, err := topology.New(mode, url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A URL that is not valid changes nothing, and is told of in the words of Validate.
func TestLoginOfBadURL(t *testing.T) {
	t.Parallel()
	var login topology.Login
	for mode, url := range map[topology.Mode]string{
		topology.Single: "http://:hunter2@a", topology.Cluster: "redis://:hunter2@a/3", topology.Sentinel: "redis://:hunter2@a", "ring": "redis://a",
	} {
		got, want := fmt.Sprint(login.Set(mode, url)), fmt.Sprint(topology.Validate(mode, url))
		if got != want || got == "<nil>" || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	}
}
