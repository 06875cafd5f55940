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
	"intents.internal/pkg/embedded"
)

// Some peers are this program again, as processes of their own, so that their CPU time can be told apart.

// startChild starts this program with a scenario of its own and the address it shall listen at.
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
	return address, family(process.PID()), nil
}

// startFixed starts fasthttp with a fixed refusal: nothing written on fasthttp can refuse for less.
func (b *bench) startFixed(ctx context.Context) (p peer, err error) {
	p.limited, p.pids, err = b.startChild(ctx, "fixed")
	if err != nil {
		return p, err
	}
	return p, pin(ctx, b.cores.proxy, p.pids...)
}

// fixed serves one refusal at an address, of the gateway's size.
func fixed(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("fixed needs an address")
	}
	body := []byte(`{"code":"RATE_LIMITED","message":"Too many requests were made with this key. Wait as long as ` +
		`Retry-After says, then try again.","details":{"tryAgainIn":1200}}`)
	return serveChild(ctx, args[0], func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
		ctx.SetContentType("application/json")
		ctx.Response.SetBodyRaw(body)
	})
}

// standIn answers the measured request in core's place, with what core answered to it once, and passes the gateway's own
// questions on to core. Its arguments are where to listen, core's address, and the headers that core demands.
func standIn(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("stand-in needs two addresses")
	}
	core := &fasthttp.HostClient{Addr: args[1], MaxConns: 1024}
	var first fasthttp.Request
	first.SetRequestURI("http://" + args[1] + target)
	for _, header := range args[2:] {
		name, value, _ := strings.Cut(header, ": ")
		first.Header.Set(name, value)
	}
	var answer fasthttp.Response
	if err := core.Do(&first, &answer); err != nil {
		return fmt.Errorf("ask core: %w", err)
	}
	if answer.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("ask core: it answers %d %s", answer.StatusCode(), answer.Body())
	}
	return serveChild(ctx, args[0], func(ctx *fasthttp.RequestCtx) {
		if string(ctx.RequestURI()) == target {
			answer.CopyTo(&ctx.Response)
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
		return nil // its clients end with it
	}
}

// useStandIn puts a stand-in between core and the proxies, and a gateway of its own before that.
func (b *bench) useStandIn(ctx context.Context) error {
	args := []string{b.upstream}
	for _, header := range b.identity() {
		args = append(args, header[0]+": "+header[1])
	}
	address, pids, err := b.startChild(ctx, "stand-in", args...)
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
