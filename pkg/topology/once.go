package topology

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Script is a script call that go-redis redirects after MOVED and ASK, because the node has not executed it, but does not retry
// after a lost connection, because it may have been executed.
type Script struct {
	*redis.Cmd
	redirected bool
}

// NewScript creates a call of EVAL with a script's text, or of EVALSHA with its SHA-1, with at least one key.
func NewScript(ctx context.Context, command, script string, keys []string, args []any) *Script {
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, command, script, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	return &Script{Cmd: redis.NewCmd(ctx, append(words, args...)...)}
}

// NoRetry implements redis.Cmder.
func (*Script) NoRetry() bool { return true }

// SetErr implements redis.Cmder.
func (s *Script) SetErr(err error) {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	s.redirected = s.redirected || moved || ask
	s.Cmd.SetErr(err)
}

// Redirected reports whether a node of a Cluster redirected the call in a pipeline, whatever the final result.
func (s *Script) Redirected() bool { return s.redirected }

// Key returns the first key.
func (s *Script) Key() string {
	key, _ := s.Args()[3].(string)
	return key
}

// AtMostOnce is a client that executes each script at most once. A script call takes at most three times the read timeout,
// however many nodes or Sentinels it contacts; after a failure a Cluster's client reloads the slot map.
type AtMostOnce struct{ redis.UniversalClient }

// Eval implements redis.Scripter.
func (c AtMostOnce) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, NewScript(ctx, "eval", script, keys, args))
}

// EvalSha implements redis.Scripter.
func (c AtMostOnce) EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, NewScript(ctx, "evalsha", sha1, keys, args))
}

func (c AtMostOnce) run(ctx context.Context, script *Script) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, 3*readTimeout(c.UniversalClient))
	defer cancel()
	if err := c.Process(ctx, script); err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		Reload(c.UniversalClient)
	}
	return script.Cmd
}

func readTimeout(client redis.UniversalClient) time.Duration {
	switch client := client.(type) {
	case *redis.Client:
		return client.Options().ReadTimeout
	case *redis.ClusterClient:
		return client.Options().ReadTimeout
	default:
		return time.Second
	}
}
