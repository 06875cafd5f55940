// Package tokenbucket has the arithmetic of all token buckets, which is that of redis_rate (GCRA), and the storage format in which gateways
// and cores share those of keys and accounts in Redis. A request takes one token from its key's bucket and one or more from its account's,
// or none.
//
// On one server or a master behind Sentinels, a bucket is a field of the hash of the current generation, which lasts 64 seconds,
// or of the previous one. A bucket that takes longer to refill is also stored in a key of its own. The hashes have no TTL, because
// Redis would block while it frees an expired hash: an old generation is removed with UNLINK.
//
// On a Cluster, where a script cannot span hash slots, an account's bucket and those of its keys are the fields of one hash.
package tokenbucket

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/network"
	"intents.internal/pkg/topology"
)

const (
	// Prefix is the prefix of all keys, as of redis_rate's.
	Prefix = "rate:"
	// Current is the key of the hash of the current generation.
	Current = Prefix + "buckets:current"
	// Previous is the key of the hash of the previous generation.
	Previous = Prefix + "buckets:previous"
	// Epoch is the Unix time from which redis_rate counts seconds.
	Epoch = 1483228800

	keyPrefix     = "key:"
	tokenPrefix   = "client-token:"
	accountPrefix = "account:"
)

var (
	//go:embed gcra.lua
	gcraSource string
	//go:embed take.lua
	takeSource string
	//go:embed take_account.lua
	takeAccountSource string

	takeScript        = redis.NewScript(gcraSource + takeSource)
	takeAccountScript = redis.NewScript(gcraSource + takeAccountSource)
)

// KeyName returns the name of the bucket of a key; id is its LimitBucket.
func KeyName(id string) string { return keyPrefix + id }

// ClientTokenName returns the name of the bucket that all client tokens of a key and a transfer share; key is the name of the key's bucket.
func ClientTokenName(key, transferID string) string {
	return tokenPrefix + strings.TrimPrefix(key, keyPrefix) + ":" + transferID
}

// AccountName returns the name of the bucket that all keys of an account in one environment share.
func AccountName(env network.Environment, accountID string) string {
	return accountPrefix + string(env) + ":" + accountID
}

// AccountHash returns the key of the hash that stores, on a Cluster, the account's bucket of this name and those of its keys.
func AccountHash(account string) string { return Prefix + "{" + account + "}" }

// fieldLetters are the first letters of the fields of buckets that are named by one of these prefixes and a UUID.
var fieldLetters = map[string]string{
	keyPrefix: "k", accountPrefix + string(network.Live) + ":": "l", accountPrefix + string(network.Test) + ":": "t",
}

// Field returns the field of the bucket name: a letter and the 16 bytes of the UUID for a name "key:UUID", "account:live:UUID" or
// "account:test:UUID", and n and the name for any other.
func Field(name string) string {
	end := strings.LastIndexByte(name, ':') + 1
	if letter, text := fieldLetters[name[:end]], name[end:]; letter != "" && len(text) == 36 && strings.ToLower(text) == text {
		if id, err := uuid.Parse(text); err == nil {
			return letter + string(id[:])
		}
	}
	return "n" + name
}

// Call is one script call for requests whose keys share one rule and whose accounts share one, and that all take as many tokens. Begin
// resets a Call for reuse. It is not safe for concurrent use.
type Call struct {
	args    []any
	account any
	reply   []int64
	err     error
}

// firstRule and firstField are the indexes of the rules and of the first bucket in the arguments, after the script, the number of
// keys and two keys.
const firstRule, firstField = 5, 12

// Begin resets the call to one without requests. Each of its requests takes one token of its key and cost tokens of its account, which
// must be at least 1 and at most the account's burst, or none of either.
func (c *Call) Begin(key, account Rule, cost int) {
	c.account, c.reply, c.err = nil, nil, nil
	c.args = append(c.args[:0], "evalsha", takeScript.Hash(), 2, Current, Previous,
		key.Burst, key.Rate, key.Period.Seconds(), account.Burst, account.Rate, account.Period.Seconds(), cost)
}

// sameAccount is the field for no account, and for the account of the previous request.
var sameAccount any = ""

// Add adds a request. Each argument is a Field, as any so that the caller can reuse it without an allocation for each call;
// account is nil if the account has no rule. Requests of one account must be added consecutively, and so must those of one key.
func (c *Call) Add(key, account any) {
	if account == c.account {
		account = sameAccount
	} else {
		c.account = account
	}
	c.args = append(c.args, key, account)
}

// Do makes the call on one server. It returns two numbers for each request, one for its key's bucket and one for its account's:
// the microseconds until the bucket is full, or -1 minus these if the bucket rejects the request.
func (c *Call) Do(ctx context.Context, client redis.UniversalClient) ([]int64, error) {
	c.end()
	cmd := redis.NewIntSliceCmd(ctx, c.args...)
	err := client.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		c.sendText()
		cmd = redis.NewIntSliceCmd(ctx, c.args...)
		_ = client.Process(ctx, cmd) // the error is the command's
	}
	c.setReply(cmd)
	return c.reply, c.err
}

// end adds the field that follows the requests.
func (c *Call) end() { c.args = append(c.args, "began") }

// sendText sends the script's text instead of its hash.
func (c *Call) sendText() { c.args[0], c.args[1] = "eval", gcraSource+takeSource }

func (c *Call) setReply(cmd *redis.IntSliceCmd) {
	c.reply, c.err = cmd.Val(), cmd.Err()
	if got, want := len(c.reply), len(c.args)-firstField-1; c.err == nil && got != want {
		c.err = fmt.Errorf("redis sent %d numbers on %d buckets", got, want)
	}
}

// Reply returns what Do returns, after DoAll.
func (c *Call) Reply() ([]int64, error) { return c.reply, c.err }

// DoAll makes calls on one server in one round trip, in this order; each has its own Reply.
func DoAll(ctx context.Context, client redis.UniversalClient, calls []Call) {
	if len(calls) == 1 {
		_, _ = calls[0].Do(ctx, client) // which Reply returns too
		return
	}
	sent := make([]*Call, len(calls))
	for i := range calls {
		calls[i].end()
		sent[i] = &calls[i]
	}
	unknown := pipeline(ctx, client, sent)
	if len(unknown) > 0 {
		unknown[0].sendText() // the server knows the script from then on
		pipeline(ctx, client, unknown)
	}
}

// pipeline sends calls and returns those whose script the server does not know.
func pipeline(ctx context.Context, client redis.UniversalClient, calls []*Call) (unknown []*Call) {
	pipe := client.Pipeline()
	commands := make([]*redis.IntSliceCmd, len(calls))
	for i, c := range calls {
		commands[i] = redis.NewIntSliceCmd(ctx, c.args...)
		_ = pipe.Process(ctx, commands[i]) // this only queues it
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	for i, c := range calls {
		c.setReply(commands[i])
		if redis.HasErrorPrefix(c.err, "NOSCRIPT") {
			unknown = append(unknown, c)
		}
	}
	return unknown
}

// OnCluster returns the call for a pipeline to a Cluster: EVALSHA, or EVAL with the script's text. All its requests must belong
// to the account whose bucket has this name. Its reply is that of Do.
func (c *Call) OnCluster(ctx context.Context, account string, text bool) *topology.Script {
	command, script := "evalsha", takeAccountScript.Hash()
	if text {
		command, script = "eval", gcraSource+takeAccountSource
	}
	return topology.NewScript(ctx, command, script, []string{AccountHash(account)}, c.args[firstRule:])
}

// Bucket is a bucket's name and its rule.
type Bucket struct {
	Name string
	Rule Rule
}

// Take takes one token from the bucket of a key and one from its account's, or returns the time until both have one.
func Take(ctx context.Context, client redis.UniversalClient, key, account Bucket) (wait time.Duration, err error) {
	var call Call
	call.Begin(key.Rule, account.Rule, 1)
	var accountField any
	if account.Rule.Rate > 0 {
		accountField = Field(account.Name)
	}
	call.Add(Field(key.Name), accountField)
	var micros []int64
	if _, isCluster := client.(*redis.ClusterClient); isCluster {
		micros, err = takeAccountScript.Run(ctx, topology.AtMostOnce{UniversalClient: client},
			[]string{AccountHash(account.Name)}, call.args[firstRule:]...).Int64Slice()
	} else {
		micros, err = call.Do(ctx, client)
	}
	if err != nil {
		return 0, err
	}
	return longestWait(micros, key.Rule, account.Rule), nil
}

// Full returns when each of the buckets is full, in seconds since Epoch: 0 for an unused bucket, and NaN if the value in Redis is
// not a bucket. All buckets belong to the account whose bucket has this name, or to its keys. It takes no token and needs one
// round trip.
func Full(ctx context.Context, client redis.UniversalClient, account string, names ...string) ([]float64, error) {
	fields, keys := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		fields[i], keys[i] = Field(name), Prefix+name
	}
	pipeline := client.Pipeline()
	var replies []*redis.SliceCmd
	if _, isCluster := client.(*redis.ClusterClient); isCluster {
		replies = append(replies, pipeline.HMGet(ctx, AccountHash(account), fields...))
	} else {
		replies = append(replies, pipeline.HMGet(ctx, Current, fields...), pipeline.HMGet(ctx, Previous, fields...), pipeline.MGet(ctx, keys...))
	}
	if _, err := pipeline.Exec(ctx); err != nil {
		return nil, err
	}
	full := make([]float64, len(names))
	for _, reply := range replies {
		for i, value := range reply.Val() {
			if text, found := value.(string); found {
				full[i] = max(full[i], decode(text)) // NaN if either is NaN
			}
		}
	}
	return full, nil
}

// decode parses a bucket: 8 bytes in a hash; decimal in a key of its own, and wherever Redis's Lua has no struct library.
func decode(text string) float64 {
	if len(text) == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64([]byte(text)))
	}
	tat, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return tat
}
