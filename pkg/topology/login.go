package topology

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Login is whom the new connections of one client are made as: the user and password of the URL it was made with, then those
// that Set was given last. Connections that are open stay as they are, as Redis lets them. The zero value is ready for New; a
// Login is safe for concurrent use and asked for new connections alone, so calls cost nothing by it.
type Login struct {
	// servers are one server, the nodes of a Cluster, or the master behind Sentinels.
	servers, sentinels atomic.Pointer[credentials]
}

type credentials struct{ user, password string }

// Set takes over the user and password of a URL of the client's mode; with Sentinels both theirs and the master's. What the URL says
// besides is not looked at. It returns what Validate does, and changes nothing then.
func (l *Login) Set(mode Mode, rawURL string) error {
	p, err := parse(mode, rawURL)
	if err == nil {
		l.take(p)
	}
	return err
}

func (l *Login) take(p parsed) {
	switch {
	case p.cluster != nil:
		l.servers.Store(&credentials{p.cluster.Username, p.cluster.Password})
	case p.sentinel != nil:
		l.servers.Store(&credentials{p.sentinel.Username, p.sentinel.Password})
		l.sentinels.Store(&credentials{p.sentinel.SentinelUsername, p.sentinel.SentinelPassword})
	default:
		l.servers.Store(&credentials{p.single.Username, p.single.Password})
	}
}

// current is go-redis's CredentialsProvider, which it asks for each connection to a server, and never for one to a Sentinel.
func (l *Login) current() (user, password string) {
	now := l.servers.Load()
	return now.user, now.password
}

// atSentinel is the hook for new connections of a client that asks Sentinels. go-redis takes their password once and for all,
// so it is given none and they are spoken to here.
func (l *Login) atSentinel(ctx context.Context, conn *redis.Conn) error {
	now := l.sentinels.Load()
	// The hook is the servers' as well, which go-redis calls by this name wherever they are.
	if now.password == "" || strings.Contains(conn.String(), "FailoverClient") {
		return nil
	}
	return conn.Hello(ctx, protocol, now.user, now.password, "").Err()
}
