package command_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// A gateway that is told to end while clients keep it busy answers every request that it has taken, tells each client with
// its last answer that the connection ends, and is gone within the grace time.
func TestGateway_TerminatedUnderLoad(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(20 * time.Millisecond) // so that a request is always in flight
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "[]")
	})
	variables := environment(t, core)
	variables["GATEWAY_DRAIN_DELAY"] = "2s" // a client of a busy machine may take so long to send its next request
	g := newGateway(t, variables)
	ctx, term := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: 1_000_000, PeriodSeconds: 1}})
	asynctest.Eventually(t, "it is ready", func() bool {
		status, _ := get(t, "http://"+g.OperationsAddress()+"/readyz", "")
		return status == http.StatusOK
	})

	const clients = 8
	load := busy{address: g.Address(), key: key.Reveal()}
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			if err := load.run(); err != nil {
				t.Error(err)
			}
		})
	}
	asynctest.Eventually(t, "all clients are busy", func() bool { return load.answered.Load() >= 5*clients })
	term()
	began := time.Now()
	asynctest.Eventually(t, "readiness fails", func() bool {
		status, _ := get(t, "http://"+g.OperationsAddress()+"/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	load.told.Store(true)
	if err := errors.Join(<-ran, g.Close()); err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	running.Wait()
	t.Logf("%d requests answered, %d of them the last of their connection; gone %s after TERM", load.answered.Load(), load.lasts.Load(), took)
	// A client that comes back while the gateway still takes connections is told again.
	if load.lasts.Load() < 3*clients {
		t.Errorf("%d clients were told only %d times that their connection ends", clients, load.lasts.Load())
	}
	if took > 20*time.Second { // well below the grace time of 30 s, and far above the 2 s of the delay
		t.Errorf("the end took %s", took)
	}
	if heard, answered := len(core.Requests()), load.answered.Load(); int64(heard) != answered {
		t.Errorf("core was asked %d times, and clients have %d answers", heard, answered)
	}
}

// busy is clients that send one request after the other, on a connection as long as it lasts.
type busy struct {
	address, key    string
	answered, lasts atomic.Int64
	// told says that every answer to come must be the last of its connection.
	told atomic.Bool
}

// run ends without an error when nobody takes connections any more. Every request that was sent must have been answered.
func (b *busy) run() error {
	for {
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(context.Background(), "tcp", b.address)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) { // reset: the socket closed meanwhile
			return nil
		}
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		err = b.use(conn)
		_ = conn.Close()
		if err != nil {
			return err
		}
	}
}

// use sends requests until an answer says that it is the last.
func (b *busy) use(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	answers := bufio.NewReader(conn)
	for n := 0; ; n++ {
		mustBeLast := b.told.Load()
		_, err := fmt.Fprintf(conn, "GET /v2/tokens HTTP/1.1\r\nHost: a\r\nx-api-key: %s\r\n\r\n", b.key)
		var answer *http.Response
		if err == nil {
			answer, err = http.ReadResponse(answers, nil)
		}
		if n == 0 && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
			return nil // the system took the connection, and the gateway no more
		}
		if err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || string(body) != "[]" {
			return fmt.Errorf("answer %d: %d %q, %w", n, answer.StatusCode, body, err)
		}
		b.answered.Add(1)
		if answer.Close {
			b.lasts.Add(1)
			return nil
		}
		if mustBeLast {
			return fmt.Errorf("answer %d does not say that the connection ends", n)
		}
	}
}
