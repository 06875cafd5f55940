// Package topology creates the go-redis client for the operator's Redis: one server, a Redis Cluster, or a master behind
// Sentinels. It owns the form of their URLs, the timeouts of calls, and that no call is sent twice. It rejects a URL that does
// not match its mode, and does not depend on what is stored in Redis.
package topology

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// go-redis prints every failed dial; callers log failures themselves, sampled.
func init() { logging.Disable() }

// protocol is RESP2, in which go-redis needs nothing else of a new connection.
const protocol = 2

// Mode is which Redis the URL means; the zero value is Single.
type Mode string

const (
	// Single is one server, or what looks like one.
	Single Mode = "single"
	// Cluster is a Redis Cluster; the URL names some of its nodes, which know the others.
	Cluster Mode = "cluster"
	// Sentinel is one master and its replicas; the URL names Sentinels, which know who is master.
	Sentinel Mode = "sentinel"
)

// UnmarshalText reads single, cluster or sentinel.
func (m *Mode) UnmarshalText(text []byte) error {
	switch mode := Mode(text); mode {
	case Single, Cluster, Sentinel:
		*m = mode
		return nil
	default:
		return fmt.Errorf("must be single, cluster or sentinel, not %q", text)
	}
}

// Options bound calls; all but PoolSize must be set.
type Options struct {
	// DialTimeout is how long a new connection may take, besides three times Timeout where Sentinels are asked first; Timeout
	// is how long one read or write may take, and PoolTimeout the wait for a connection that is in use.
	DialTimeout, Timeout, PoolTimeout time.Duration
	// Conns bounds the connections, to each node where there are several.
	Conns int
	// PoolSize is how many calls may hold or wait for a connection, and the number of failed dials in a row after which
	// go-redis dials no more than once a second. Default Conns.
	PoolSize int
}

// Validate returns the error that New would return for the URL.
func Validate(mode Mode, rawURL string) error {
	_, err := parse(mode, rawURL)
	return err
}

// New makes a client, which opens no connection yet. Its errors tell what to write, and never repeat the URL, since it may
// hold a password.
//
// A call that was sent may have been executed, so none is sent again: neither by a client's own retries nor, with a
// Cluster, after a connection was lost; for the latter scripts must be run through AtMostOnce. Replies are RESP2. go-redis
// says HELLO on each new connection all the same, which costs one round trip, and a second one where the URL names a
// database other than 0; with these options it says nothing else there.
func New(mode Mode, rawURL string, o Options) (redis.UniversalClient, error) {
	p, err := parse(mode, rawURL)
	if err != nil {
		return nil, err
	}
	if o.PoolSize == 0 {
		o.PoolSize = o.Conns
	}
	switch {
	case p.cluster != nil:
		o.boundCluster(p.cluster)
		return redis.NewClusterClient(p.cluster), nil
	case p.sentinel != nil:
		o.boundSentinel(p.sentinel)
		return redis.NewFailoverClient(p.sentinel), nil
	default:
		o.boundSingle(p.single)
		return redis.NewClient(p.single), nil
	}
}

func (o Options) boundSingle(c *redis.Options) {
	c.MaxRetries, c.DialerRetries = -1, 1
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = o.DialTimeout, o.Timeout, o.Timeout, o.PoolTimeout
	c.ContextTimeoutEnabled = true
	c.MaxActiveConns, c.PoolSize, c.PipelinePoolSize = o.Conns, o.PoolSize, -1
	c.Protocol, c.DisableIdentity = protocol, true
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func (o Options) boundCluster(c *redis.ClusterOptions) {
	c.MaxRetries, c.DialerRetries = -1, 1
	// MOVED and ASK are answers of a node that has executed nothing, and followed at once.
	c.MaxRedirects, c.MinRetryBackoff, c.MaxRetryBackoff = 3, -1, -1
	// Otherwise go-redis asks for the server's list of commands now and then, whatever time the call has.
	c.DisableRoutingPolicies = true
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = o.DialTimeout, o.Timeout, o.Timeout, o.PoolTimeout
	c.ContextTimeoutEnabled = true
	// A pipeline pool of its own would have no bound.
	c.MaxActiveConns, c.PoolSize, c.PipelinePoolSize = o.Conns, o.PoolSize, -1
	c.Protocol, c.DisableIdentity = protocol, true
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func (o Options) boundSentinel(c *redis.FailoverOptions) {
	c.MaxRetries, c.DialerRetries = -1, 1
	c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = o.Timeout, o.Timeout, o.PoolTimeout
	// A new connection begins at a Sentinel. One that hangs is asked twice before the others are, and there must be time left
	// for them and for the master.
	c.DialTimeout = o.DialTimeout + 3*o.Timeout
	c.ContextTimeoutEnabled = true
	c.MaxActiveConns, c.PoolSize, c.PipelinePoolSize = o.Conns, o.PoolSize, -1
	c.Protocol, c.DisableIdentity = protocol, true
}
