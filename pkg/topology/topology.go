// Package topology creates the go-redis client for the Redis that an operator runs: one server, a Redis Cluster, or a master
// behind Sentinels.
//
// It owns the URL format of each, the timeouts of a call, and that no call is retried. It rejects a URL that does not match its
// mode, and knows nothing of the data in Redis.
package topology

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// go-redis prints every failed dial. Callers log their failures themselves, sampled.
func init() { logging.Disable() }

// protocol is RESP2, for which go-redis needs no other command on a new connection.
const protocol = 2

// Mode is the kind of Redis that the URL names; the zero value is Single.
type Mode string

const (
	// Single is one server, or a proxy that looks like one.
	Single Mode = "single"
	// Cluster is a Redis Cluster. The URL names some of its nodes, from which the client learns the others.
	Cluster Mode = "cluster"
	// Sentinel is one master and its replicas. The URL names Sentinels, from which the client learns the master.
	Sentinel Mode = "sentinel"
)

// UnmarshalText parses single, cluster or sentinel.
func (m *Mode) UnmarshalText(text []byte) error {
	switch mode := Mode(text); mode {
	case Single, Cluster, Sentinel:
		*m = mode
		return nil
	default:
		return fmt.Errorf("must be single, cluster or sentinel, not %q", text)
	}
}

// Options bound the cost of calls. All but PoolSize are required.
type Options struct {
	// DialTimeout bounds a new connection, plus three times Timeout if Sentinels are asked first; Timeout bounds one read or
	// write, and PoolTimeout the wait for a connection that is in use.
	DialTimeout, Timeout, PoolTimeout time.Duration
	// Conns bounds the connections, per node if there are several.
	Conns int
	// PoolSize bounds the calls that hold or wait for a connection. It is also the number of consecutive failed dials after which
	// go-redis dials at most once a second. Default: Conns.
	PoolSize int
}

// Validate returns the error that New would return for the URL.
func Validate(mode Mode, rawURL string) error {
	_, err := parse(mode, rawURL)
	return err
}

// New creates a client, which opens no connection yet. Its errors tell how to write the URL and never contain it, because it may
// hold a password.
//
// No call is retried once it was sent, because it may have been executed: neither by a client's own retries nor, with a Cluster,
// after a lost connection. On a Cluster scripts must be run through AtMostOnce for this. Replies are RESP2. go-redis still sends
// HELLO on each new connection, which costs one round trip, and a second one if the URL names a database other than 0; with these
// options it sends nothing else.
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
	// A node answers MOVED and ASK without executing the command, so they are followed at once.
	c.MaxRedirects, c.MinRetryBackoff, c.MaxRetryBackoff = 3, -1, -1
	// Otherwise go-redis sometimes fetches the server's list of commands, regardless of the deadline of the call.
	c.DisableRoutingPolicies = true
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = o.DialTimeout, o.Timeout, o.Timeout, o.PoolTimeout
	c.ContextTimeoutEnabled = true
	// A separate pipeline pool would be unbounded.
	c.MaxActiveConns, c.PoolSize, c.PipelinePoolSize = o.Conns, o.PoolSize, -1
	c.Protocol, c.DisableIdentity = protocol, true
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func (o Options) boundSentinel(c *redis.FailoverOptions) {
	c.MaxRetries, c.DialerRetries = -1, 1
	c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = o.Timeout, o.Timeout, o.PoolTimeout
	// A new connection begins at a Sentinel. A Sentinel that hangs is tried twice before the others, and there must be time left
	// for them and for the master.
	c.DialTimeout = o.DialTimeout + 3*o.Timeout
	c.ContextTimeoutEnabled = true
	c.MaxActiveConns, c.PoolSize, c.PipelinePoolSize = o.Conns, o.PoolSize, -1
	c.Protocol, c.DisableIdentity = protocol, true
}
