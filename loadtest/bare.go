package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/tokenbucket"
)

// bareGateway does the gateway's job for one request and nothing else: it looks the key up in a map, takes a token in Redis with the
// requests that come meanwhile, and forwards, or refuses by itself while the key's bucket is empty. It has no checks of the framing,
// no deadlines, no retries, no metrics and no usage, so its cost is the lower bound of a gateway on fasthttp and go-redis with the
// exact limit.
type bareGateway struct {
	keys    map[apikey.Hash]*bareKey
	account any
	redis   redis.UniversalClient
	core    string
	request []byte

	mu      sync.Mutex
	waiting []*bareTake
	running bool
	call    tokenbucket.Call // the leader's
	idle    []*bareConn
}

type bareKey struct {
	field any          // its bucket, a tokenbucket.Field
	empty atomic.Int64 // until when its bucket has no token, in milliseconds since 1970
}

// bareTake is one request for a token.
type bareTake struct {
	key           *bareKey
	allowed, lead bool
	err           error
	wake          chan struct{}
}

type bareConn struct {
	net.Conn
	reader *bufio.Reader
}

// startBare starts a bare gateway for the good and the limited keys.
func (b *bench) startBare(ctx context.Context) (p peer, err error) {
	p.bare, p.pids, err = b.startPinned(ctx, "bare", append([]string{b.upstream, b.env.RedisURL, b.keys.good.path, b.keys.limited.path}, b.identityLines()...)...)
	p.limited = p.bare
	return p, err
}

// bare is the bare gateway's process. Its arguments are the address to listen at, core's address, Redis's URL, two files of keys, and
// the headers that core requires.
func bare(ctx context.Context, args []string) error {
	if len(args) < 5 {
		return errors.New("bare needs its own and core's address, Redis's URL and two files of keys")
	}
	good, goodErr := os.ReadFile(args[3])
	limited, limitedErr := os.ReadFile(args[4])
	if err := errors.Join(goodErr, limitedErr); err != nil {
		return fmt.Errorf("read the keys: %w", err)
	}
	options, err := redis.ParseURL(args[2])
	if err != nil {
		return fmt.Errorf("read Redis's URL: %w", err)
	}
	options.Protocol = 2
	g := &bareGateway{
		keys: map[apikey.Hash]*bareKey{}, account: tokenbucket.Field(tokenbucket.AccountName(network.Test, uuid.NewString())),
		redis: redis.NewClient(options), core: args[1], request: getRequest(args[5:]...),
	}
	for text := range strings.FieldsSeq(string(good) + " " + string(limited)) {
		key, err := apikey.Parse(text)
		if err != nil {
			return fmt.Errorf("read the keys: %w", err)
		}
		g.keys[key.Hash()] = &bareKey{field: tokenbucket.Field(tokenbucket.KeyName(uuid.NewString()))}
	}
	return errors.Join(serveChild(ctx, args[0], g.handle), g.redis.Close())
}

func (g *bareGateway) handle(ctx *fasthttp.RequestCtx) {
	presented, err := apikey.Parse(string(ctx.Request.Header.Peek("X-Api-Key")))
	key := g.keys[presented.Hash()]
	if err != nil || key == nil {
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		return
	}
	now := time.Now().UnixMilli()
	if wait := key.empty.Load() - now; wait > 0 {
		refuse(ctx, wait)
		return
	}
	allowed, err := g.take(key)
	if err == nil && !allowed {
		refuse(ctx, key.empty.Load()-now)
		return
	}
	if err == nil {
		err = g.forward(&ctx.Response)
	}
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadGateway)
	}
}

// refuse answers with the header fields and the length of the gateway's 429.
func refuse(ctx *fasthttp.RequestCtx, wait int64) {
	var scratch [64]byte
	fixedReply(ctx)
	header := &ctx.Response.Header
	header.SetCanonical([]byte("X-Request-Id"), []byte("01a20912-198e-79b6-a7cb-ddc9d07597a3"))
	header.SetCanonical([]byte("Ratelimit-Policy"), []byte(`"default";q=50;w=60, "account";q=1000;w=60`))
	header.SetCanonical([]byte("Ratelimit"), strconv.AppendInt(append(scratch[:0], `"default";r=0;t=59, "account";r=950;t=`...), wait, 10))
	header.SetCanonical([]byte(fasthttp.HeaderRetryAfter), strconv.AppendInt(scratch[:0], wait/1000+1, 10))
}

// take takes a token of the key. The first request that finds no call under way leads: it makes one call for all that wait.
func (g *bareGateway) take(key *bareKey) (bool, error) {
	t := &bareTake{key: key, wake: make(chan struct{}, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, t)
	t.lead = !g.running
	g.running = true
	g.mu.Unlock()
	if !t.lead {
		<-t.wake
	}
	if t.lead {
		g.lead(t)
	}
	return t.allowed, t.err
}

func (g *bareGateway) lead(own *bareTake) {
	runtime.Gosched() // requests that are ready join this call
	g.mu.Lock()
	batch := g.waiting
	g.waiting = nil
	g.mu.Unlock()
	// The script wants the requests of one key one after the other.
	slices.SortFunc(batch, func(a, b *bareTake) int { return cmp.Compare(a.key.field.(string), b.key.field.(string)) })
	limit := account.DefaultLimit
	g.call.Begin(tokenbucket.Per(limit.Requests, limit.Period),
		tokenbucket.Per(1e9, time.Minute), 1)
	for _, t := range batch {
		g.call.Add(t.key.field, g.account)
	}
	reply, err := g.call.Do(context.Background(), g.redis)
	for i, t := range batch {
		t.err = err
		t.allowed = err == nil && reply[2*i] >= 0 && reply[2*i+1] >= 0
		if err == nil && !t.allowed { // until the bucket has room for one more
			full := time.Duration(-1-reply[2*i]) * time.Microsecond
			t.key.empty.Store(time.Now().Add(full - limit.Period + limit.Period/time.Duration(limit.Requests)).UnixMilli())
		}
		if t != own {
			t.wake <- struct{}{}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running = len(g.waiting) > 0; g.running {
		g.waiting[0].lead = true
		g.waiting[0].wake <- struct{}{}
	}
}

// forward sends the request to core over a connection that is kept.
func (g *bareGateway) forward(response *fasthttp.Response) error {
	c, err := g.conn()
	if err != nil {
		return err
	}
	if _, err := c.Write(g.request); err != nil {
		return errors.Join(err, c.Close())
	}
	runtime.Gosched() // the response may come meanwhile, which saves the wait for it
	if err := response.Read(c.reader); err != nil {
		return errors.Join(err, c.Close())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle = append(g.idle, c)
	return nil
}

func (g *bareGateway) conn() (*bareConn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.idle); n > 0 {
		c := g.idle[n-1]
		g.idle = g.idle[:n-1]
		return c, nil
	}
	c, err := net.Dial("tcp", g.core) //nolint:noctx // core is on this machine
	if err != nil {
		return nil, err
	}
	return &bareConn{c, bufio.NewReader(c)}, nil
}
