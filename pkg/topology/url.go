package topology

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The errors show how to write the URL for each mode, in the parameter names of go-redis.
var (
	errSingle   = errors.New("must be a URL such as redis://127.0.0.1:6379/0")
	errSeveral  = errors.New("has addr or master_name, which are for the modes cluster and sentinel: set the mode, or leave them out")
	errCluster  = errors.New("must, for a cluster, be a URL such as redis://node1:6379?addr=node2:6379&addr=node3:6379, with redis:// or rediss://")
	errSentinel = errors.New("must, for sentinels, be a URL such as " +
		"redis://sentinel1:26379/0?addr=sentinel2:26379&addr=sentinel3:26379&master_name=mymaster, with redis:// or rediss://")
	errDatabase = errors.New("must name no database: a cluster has only database 0")
	errReplicas = errors.New("must not ask for replicas (read_only, replica_only, route_by_latency, route_randomly): they may be behind, and take no writes")
)

// parsed is the parsed URL: one of the three fields is set, by the mode.
type parsed struct {
	single   *redis.Options
	cluster  *redis.ClusterOptions
	sentinel *redis.FailoverOptions
}

func parse(mode Mode, rawURL string) (p parsed, err error) {
	switch mode {
	case Cluster:
		p.cluster, err = parseCluster(rawURL)
	case Sentinel:
		p.sentinel, err = parseSentinel(rawURL)
	case Single, "":
		p.single, err = parseSingle(rawURL)
	default:
		err = fmt.Errorf("has no mode %q: single, cluster or sentinel", mode)
	}
	return p, err
}

func parseSingle(rawURL string) (*redis.Options, error) {
	options, err := redis.ParseURL(rawURL)
	if err == nil {
		return options, nil
	}
	if u, err := url.Parse(rawURL); err == nil && (u.Query().Has("addr") || u.Query().Has("master_name")) {
		return nil, errSeveral
	}
	return nil, errSingle
}

func parseCluster(rawURL string) (*redis.ClusterOptions, error) {
	u, options := parts(rawURL), (*redis.ClusterOptions)(nil)
	if u != nil {
		options, _ = redis.ParseClusterURL(rawURL) // the error may contain the password
	}
	switch {
	case options == nil:
		return nil, errCluster
	case strings.Trim(u.Path, "/") != "" && strings.Trim(u.Path, "/") != "0":
		return nil, errDatabase
	case options.ReadOnly || options.RouteByLatency || options.RouteRandomly:
		return nil, errReplicas
	}
	if options.TLSConfig != nil {
		options.TLSConfig.ServerName = ""
	}
	return options, nil
}

func parseSentinel(rawURL string) (*redis.FailoverOptions, error) {
	u, options := parts(rawURL), (*redis.FailoverOptions)(nil)
	if u != nil {
		options, _ = redis.ParseFailoverURL(rawURL) // the error may contain the password
	}
	switch {
	case options == nil || options.MasterName == "" || u.Port() == "": // the default would be the port of a server, not of a Sentinel
		return nil, errSentinel
	case options.ReplicaOnly || options.UseDisconnectedReplicas || options.RouteByLatency || options.RouteRandomly:
		return nil, errReplicas
	}
	if options.TLSConfig != nil {
		options.TLSConfig.ServerName = ""
	}
	return options, nil
}

// parts parses the URL; nil if it has no host. TLS verifies each node's certificate for the address that it is reached at, from
// the URL or from the other nodes; go-redis would verify all of them for the first address.
func parts(rawURL string) *url.URL {
	u, err := url.Parse(rawURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return u
}
