package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/embedded"
)

// Some peers are this program in processes of their own, so that their CPU time can be measured.

// startChild starts a scenario of this program that listens on a free address.
func (b *bench) startChild(ctx context.Context, scenario string, args ...string) (address string, pids []int, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	if address, err = freeAddress(); err != nil {
		return "", nil, err
	}
	process, err := b.startPeer(ctx, embedded.Command{
		Name: scenario, Path: self, Args: append([]string{scenario, address}, args...), Env: append(os.Environ(), "GOMAXPROCS=1"),
	}, address)
	if err != nil {
		return "", nil, err
	}
	return address, processTree(process.PID()), nil
}

// startPinned starts a scenario of this program on the proxy's CPU.
func (b *bench) startPinned(ctx context.Context, scenario string, args ...string) (address string, pids []int, err error) {
	if address, pids, err = b.startChild(ctx, scenario, args...); err != nil {
		return "", nil, err
	}
	return address, pids, pin(ctx, b.cpus.proxy, pids...)
}

// startFixed starts a fasthttp server with a fixed 429 response, the lower bound of the cost of a rejection by fasthttp.
func (b *bench) startFixed(ctx context.Context) (p peer, err error) {
	p.limited, p.pids, err = b.startPinned(ctx, "fixed")
	return p, err
}

// fixed serves a 429 response of the gateway's size at an address.
func fixed(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("fixed needs an address")
	}
	return serveChild(ctx, args[0], fixedReply)
}

var tooManyRequests = []byte(`{"code":"RATE_LIMITED","message":"Too many requests were made with this key. Wait as long as ` +
	`Retry-After says, then try again.","details":{"tryAgainIn":1200}}`)

func fixedReply(ctx *fasthttp.RequestCtx) {
	ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(tooManyRequests)
}

// standIn serves the measured request with a copy of core's response, and forwards the gateway's other requests to core. Its
// arguments are the listen address, core's address, and the headers that core requires.
func standIn(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("stand-in needs its own and core's address")
	}
	core := &fasthttp.HostClient{Addr: args[1], MaxConns: 1024}
	var first fasthttp.Request
	first.SetRequestURI("http://" + args[1] + target)
	for _, header := range args[2:] {
		name, value, _ := strings.Cut(header, ": ")
		first.Header.Set(name, value)
	}
	var response fasthttp.Response
	if err := core.Do(&first, &response); err != nil {
		return fmt.Errorf("request core: %w", err)
	}
	if response.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("request core: status %d: %s", response.StatusCode(), response.Body())
	}
	return serveChild(ctx, args[0], func(ctx *fasthttp.RequestCtx) {
		if string(ctx.RequestURI()) == target {
			response.CopyTo(&ctx.Response)
			return
		}
		if err := core.DoTimeout(&ctx.Request, &ctx.Response, time.Minute); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadGateway)
		}
	})
}

func serveChild(ctx context.Context, address string, handler fasthttp.RequestHandler) error {
	server := fasthttp.Server{Handler: handler, NoDefaultServerHeader: true, CloseOnShutdown: true}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe(address) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil // the clients have ended
	}
}

// useStandIn starts a stand-in for core and another gateway in front of it.
func (b *bench) useStandIn(ctx context.Context) error {
	address, pids, err := b.startChild(ctx, "stand-in", append([]string{b.upstream}, b.identityLines()...)...)
	if err != nil {
		return err
	}
	b.upstreamName, b.upstream, b.upstreamPIDs = "stand-in for core", address, pids
	listen, listenErr := freeAddress()
	ops, opsErr := freeAddress()
	if err := errors.Join(listenErr, opsErr); err != nil {
		return err
	}
	process, err := b.startPeer(ctx, embedded.Command{
		Name: "gateway", Path: filepath.Join(b.dir, "stack", "bin", "gateway"),
		Env: append(stack.Environ(), append(b.gatewayEnv(), "GATEWAY_LISTEN="+listen, "GATEWAY_OPS_LISTEN="+ops,
			"GATEWAY_CORE_URL=http://"+address, "GATEWAY_REDIS_URL="+b.env.RedisURL)...),
	}, listen, ops)
	if err != nil {
		return err
	}
	b.gatewayAddress, b.gatewayPID, b.metricsURL = listen, process.PID(), "http://"+ops+"/metrics"
	return nil
}
