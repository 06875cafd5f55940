package main

import (
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// A server that answers one at a time and stalls once: everyone who was due meanwhile has waited, also those that could not
// be sent for want of a connection.
func TestOpenLoop_Stall(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stalled := false
	server := fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {
		if !stalled {
			stalled = true
			<-time.After(stall)
		}
	}}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = listener.Close() })

	load := openLoop{connections: 1, rate: 200, duration: 500 * time.Millisecond}
	got, err := load.run(t.Context(), listener.Addr().String(), func(int) []byte { return getRequest() })
	if err != nil {
		t.Fatal(err)
	}
	// 60 of the 100 were due during the stall, on average half of it before its end.
	if got.P50 < stall/20 || got.P99 < stall*9/10 || got.LateP99 < stall*8/10 {
		t.Errorf("%+v: the wait for a stall of %s is not in it", got, stall)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	times := make([]time.Duration, 100)
	for n := range times {
		times[n] = time.Duration(n + 1)
	}
	for share, want := range map[float64]time.Duration{0.5: 51, 0.99: 100, 1: 100, 0: 1} {
		if got := percentile(times, share); got != want {
			t.Errorf("percentile %v: %d, want %d", share, got, want)
		}
	}
}
