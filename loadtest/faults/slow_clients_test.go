package faults_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Clients that send their requests byte by byte are disconnected at the read timeout, and cost others hardly any time.
func TestClients_Slow(t *testing.T) {
	t.Parallel()
	const timeout, clients = time.Second, 300
	fleet := startGateways(t, 1, fleetConfig{
		redis: startRedis(t).url(), env: patient("GATEWAY_READ_TIMEOUT="+timeout.String(), "GATEWAY_MAX_CONNS_PER_IP=0"),
	})
	keys := shared.database.newUnlimitedKeys(t, 4)
	warm(t, fleet, keys)
	l := startLoad(t, fleet, stream{honest, keys, 50}, baselineStream)
	sleep(t, 2*time.Second)
	began := time.Now()
	lasted := make([]time.Duration, clients)
	var all sync.WaitGroup
	for n := range clients {
		request := "GET /v2/chains HTTP/1.1\r\nHost: gateway\r\nX-Slow: "
		if n%2 == 0 {
			request = "POST /v2/transfers HTTP/1.1\r\nHost: gateway\r\nX-Api-Key: " + keys[0] + "\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n"
		}
		all.Go(func() { lasted[n] = sendSlowly(t, fleet[0], request) })
	}
	all.Wait()
	ended := time.Now()
	requests := l.stop()
	before, during := requests.of(honest).between(l.began.Add(settling), began), requests.of(honest).between(began, ended)
	requests.mustAllPass(t)
	requests.mustBeSound(t)
	j := newJudge(t, requests.of(baseline))
	for _, one := range lasted {
		if one < timeout/2 || one > within(timeout+500*time.Millisecond) {
			j.late("a slow client was disconnected after %s, with a read timeout of %s", one, timeout)
			break
		}
	}
	t.Logf("others: p99 %s before, %s beside %d slow clients", before.quantile(0.99), during.quantile(0.99), clients)
	if p99, promise := during.quantile(0.99), within(max(80*time.Millisecond, 2*before.quantile(0.99))); p99 > promise {
		j.late("others' p99 is %s beside slow clients, more than %s", p99, promise)
	}
}

// sendSlowly sends the beginning of a request, and then a byte every 50 ms until the gateway closes the connection. It returns how long
// that took.
func sendSlowly(t *testing.T, g *gateway, request string) time.Duration {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 15 * time.Second}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	began := time.Now()
	_, err = fmt.Fprint(conn, request)
	buffer := make([]byte, 1024)
	for err == nil && t.Context().Err() == nil {
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err = conn.Read(buffer); errors.Is(err, os.ErrDeadlineExceeded) {
			_, err = io.WriteString(conn, "a")
		}
	}
	return time.Since(began)
}
