package topology_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/topology"
)

const (
	single   = "must be a URL such as redis://127.0.0.1:6379/0"
	several  = "has addr or master_name"
	cluster  = "must, for a cluster, be a URL such as redis://node1:6379?addr=node2:6379"
	sentinel = "must, for sentinels, be a URL such as redis://sentinel1:26379/0?addr="
	database = "must name no database"
	replicas = "must not ask for replicas"
)

// What is wrong is told in words that say what to write, and never tells the password.
func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode topology.Mode
		url  string
		want string
	}{
		{topology.Single, "redis://127.0.0.1:6379/0", ""},
		{"", "redis://127.0.0.1:6379/0", ""},
		{topology.Single, "rediss://user:hunter2@redis.example/3", ""},
		{topology.Single, "unix:///run/redis.sock?db=1", ""},
		{topology.Single, "", single},
		{topology.Single, "http://:hunter2@redis", single},
		{topology.Single, "redis://:hunter2@redis/hunter2", single},
		{topology.Single, "redis://:hunter2@a:1?addr=b:2", several},
		{topology.Single, "redis://:hunter2@a:1?master_name=m", several},
		{topology.Cluster, "redis://a:1", ""},
		{topology.Cluster, "redis://a:1/0", ""},
		{topology.Cluster, "rediss://user:hunter2@a:1?addr=b:2&addr=c:3", ""},
		{topology.Cluster, "", cluster},
		{topology.Cluster, "redis://:hunter2@?addr=b:2", cluster},
		{topology.Cluster, "unix:///run/hunter2.sock", cluster},
		{topology.Cluster, "redis://:hunter2@a:1?addr=b", cluster},
		{topology.Cluster, "redis://:hunter2@a:1?pass=hunter2", cluster},
		{topology.Cluster, "redis://:hunter2@a:1?master_name=m", cluster},
		{topology.Cluster, "redis://:hunter2@a:1/3", database},
		{topology.Cluster, "redis://:hunter2@a:1?read_only=true", replicas},
		{topology.Cluster, "redis://:hunter2@a:1?route_by_latency=true", replicas},
		{topology.Cluster, "redis://:hunter2@a:1?route_randomly=true", replicas},
		{topology.Sentinel, "redis://a:1/0?master_name=m", ""},
		{topology.Sentinel, "rediss://:hunter2@a:1?addr=b:2&addr=c:3&master_name=m&username=u&password=hunter2", ""},
		{topology.Sentinel, "", sentinel},
		{topology.Sentinel, "redis://:hunter2@a:1", sentinel},
		{topology.Sentinel, "redis://:hunter2@a?master_name=m", sentinel},
		{topology.Sentinel, "redis://:hunter2@:26379?master_name=m", sentinel},
		{topology.Sentinel, "redis://:hunter2@a:1/hunter2?master_name=m", sentinel},
		{topology.Sentinel, "unix:///run/hunter2.sock?master_name=m", sentinel},
		{topology.Sentinel, "redis://:hunter2@a:1?master_name=m&replica_only=true", replicas},
		{topology.Sentinel, "redis://:hunter2@a:1?master_name=m&use_disconnected_replicas=true", replicas},
		{topology.Sentinel, "redis://:hunter2@a:1?master_name=m&route_by_latency=true", replicas},
		{topology.Sentinel, "redis://:hunter2@a:1?master_name=m&route_randomly=true", replicas},
		{"ring", "redis://:hunter2@a:1", `has no mode "ring"`},
	} {
		err := topology.Validate(c.mode, c.url)
		text := fmt.Sprint(err)
		if c.want == "" && err != nil || c.want != "" && !strings.HasPrefix(text, c.want) {
			t.Errorf("%s %s: %s, want %q", c.mode, c.url, text, c.want)
		}
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s %s: tells a password: %s", c.mode, c.url, text)
		}
		client, made := topology.New(c.mode, c.url, bounds)
		if fmt.Sprint(made) != text {
			t.Errorf("%s %s: New says %v, Validate %s", c.mode, c.url, made, text)
		}
		if made == nil {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// bounds are what a machine keeps that runs several Redis besides; what is tested is not the time.
var bounds = topology.Options{DialTimeout: 5 * time.Second, Timeout: 5 * time.Second, PoolTimeout: 5 * time.Second, Conns: 4}

// A URL of go-redis can say much that would undo what callers rely on: it is overruled.
func TestNew_OptionsInURL(t *testing.T) {
	t.Parallel()
	loose := "?max_retries=5&dial_timeout=1h&read_timeout=1h&write_timeout=1h&pool_timeout=1h&pool_size=1000&protocol=3"
	for mode, url := range map[topology.Mode]string{
		topology.Single: "redis://a:1" + loose, topology.Cluster: "redis://a:1" + loose + "&max_redirects=100",
		topology.Sentinel: "redis://a:1" + loose + "&master_name=m",
	} {
		client, err := topology.New(mode, url, bounds)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var got string
		switch c := client.(type) {
		case *redis.Client:
			o := c.Options()
			got = fmt.Sprint(o.MaxRetries, o.DialTimeout, o.DialerRetries, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.PoolSize, o.MaxActiveConns, o.Protocol)
		case *redis.ClusterClient:
			o := c.Options()
			got = fmt.Sprint(o.MaxRetries, o.DialTimeout, o.DialerRetries, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.PoolSize, o.MaxActiveConns, o.Protocol)
			if o.MaxRedirects != 3 {
				t.Errorf("%d redirects", o.MaxRedirects)
			}
		}
		want := "0 5s 1 5s 5s 5s 4 4 2"
		switch mode {
		case topology.Cluster:
			want = "-1" + want[1:] // turned into 0 for each node
		case topology.Sentinel:
			want = strings.Replace(want, "5s", "20s", 1)
		case topology.Single:
		}
		if got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	}
}

func TestMode_UnmarshalText(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"single": "<nil>", "cluster": "<nil>", "sentinel": "<nil>",
		"Cluster": `must be single, cluster or sentinel, not "Cluster"`, "": `must be single, cluster or sentinel, not ""`,
	} {
		var mode topology.Mode
		if err := mode.UnmarshalText([]byte(word)); fmt.Sprint(err) != want || err == nil && string(mode) != word {
			t.Errorf("%q: %v, %q", word, err, mode)
		}
	}
}
