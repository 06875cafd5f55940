package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/wire"
)

// Whatever the body of core's response to a batch is, every request ends once, and the connection is used again only if the body was whole.
func FuzzBatch_Response(f *testing.F) {
	message := func(status, location, body string) []byte {
		return wire.AppendBody(wire.AppendField(wire.AppendField(nil, wire.FieldStatus, status), "Location", location), body)
	}
	frame := func(number int, text string) string {
		return string(wire.AppendFrame(nil, number, message("200", "/", text)))
	}
	all := frame(0, "0") + frame(1, "1") + frame(2, "2")
	for _, body := range []string{
		all, frame(2, "2") + frame(1, "1") + frame(0, "0"), frame(0, "0") + frame(0, "0") + frame(1, "1"), frame(5, "5"), "", "\x00", all[:9], all + "more",
		string(wire.AppendFrame(nil, 0, message("100", "/", ""))),
		string(wire.AppendFrame(nil, 0, message("1000", "/", ""))),
		string(wire.AppendFrame(nil, 0, message("200", "/\r\nSet-Cookie: a=b", ""))),
		string(wire.AppendFrame(nil, 0, wire.AppendField(nil, wire.FieldStatus, "200"))),
	} {
		f.Add([]byte(body), false)
		f.Add([]byte(body), true)
	}
	client := New(Options{Timeout: time.Second, MaxConns: 1, Metrics: prometheus.NewRegistry()})
	f.Fuzz(func(t *testing.T, body []byte, inChunks bool) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			if inChunks {
				half := len(body) / 2
				_, _ = fmt.Fprintf(there, "HTTP/1.1 200 OK\r\nX-Core: answered\r\nTransfer-Encoding: chunked\r\n\r\n")
				for _, part := range [][]byte{body[:half], body[half:]} {
					if len(part) > 0 {
						_, _ = fmt.Fprintf(there, "%x\r\n%s\r\n", len(part), part)
					}
				}
				_, _ = fmt.Fprintf(there, "0\r\n\r\n")
				return
			}
			_, _ = fmt.Fprintf(there, "HTTP/1.1 200 OK\r\nX-Core: answered\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}()
		b := sentBatch(client, here, 5*time.Second, 5*time.Second, 5*time.Second)
		conn, group, of := b.conn, b.group, slices.Clone(b.members)
		var ended sync.WaitGroup
		for n, m := range of[1:] {
			ended.Go(func() {
				if got := m.awaitEnd(); got.err == nil && !isWritable(m.response) {
					t.Errorf("request %d ended without a response that can be written: %s", n+1, &m.response.Head)
				}
			})
		}
		if got := b.read(of[0]); got.err == nil && !isWritable(of[0].response) {
			t.Errorf("request 0 ended without a response that can be written: %s", &of[0].response.Head)
		}
		ended.Wait()
		if group.permits != 0 {
			t.Errorf("%d permits are in use", group.permits)
		}
		for _, m := range of {
			if len(m.notified) > 0 {
				t.Error("a request ended twice")
			}
		}
		conn.pool.close()
	})
}

// sentBatch is a batch that was sent on a connection, of a member with each of these times left.
func sentBatch(client *Client, on net.Conn, left ...time.Duration) *batch {
	core, now := &cores.Core{}, time.Now()
	conn := &coreConn{Conn: on, core: core, pool: &pool{maxConns: 1, open: 1}}
	conn.reader = bufio.NewReaderSize(conn, maxHeaderBytes)
	b := &batch{client: client, group: &group{client: client, core: core, permits: 1}, conn: conn, hasPermit: true, left: len(left)}
	for _, d := range left {
		b.members = append(b.members, &member{
			request: &Request{Client: &fasthttp.Request{}}, response: &Response{}, notified: make(chan notification, 3),
			options: attemptOptions{began: now, deadline: now.Add(d)},
		})
	}
	return b
}

// awaitEnd waits for the result of a member that waits, as group.run does.
func (m *member) awaitEnd() attempt {
	if <-m.notified == read {
		return m.batch.read(m)
	}
	return m.got
}

// isWritable reports whether a response is a final one, and no header that clients get has a line of its own.
func isWritable(p *Response) bool {
	var sent fasthttp.ResponseHeader
	p.CopyHeader(&sent)
	for name, value := range sent.All() {
		if bytes.ContainsAny(name, "\r\n") || bytes.ContainsAny(value, "\r\n") {
			return false
		}
	}
	return sent.StatusCode() >= 200 && sent.StatusCode() <= maxStatus
}

// The burst of one account takes its share of the next batch, and the rest of it only where others leave room.
func TestGroup_Shares(t *testing.T) {
	t.Parallel()
	const room = wire.MaxBatchRequests - 1
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct{ waiting, next, then string }{
		"one account has it all":    {waiting: a(200), next: a(room), then: a(200 - room)},
		"others come after a burst": {waiting: a(200) + "bc", next: a(maxOfAccount) + "bc" + a(room-maxOfAccount-2), then: a(200 - room + 2)},
		"many come after a burst":   {waiting: a(50) + strings.Repeat("bcdef", 20), next: a(maxOfAccount) + strings.Repeat("bcdef", 9) + "bc", then: a(50-maxOfAccount) + "def" + strings.Repeat("bcdef", 10)},
		"all have room":             {waiting: a(room-1) + "b", next: a(room-1) + "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := func(account string) *member {
				return &member{request: &Request{Identity: Identity{AccountID: account}}, buffer: new([]byte), options: attemptOptions{deadline: time.Now().Add(time.Hour)}}
			}
			leader, g := waits("leader"), &group{core: &cores.Core{}, ofAccount: map[string]int{}}
			for _, account := range c.waiting {
				g.waiting = append(g.waiting, waits(string(account)))
			}
			came := slices.Clone(g.waiting)
			batch := g.take(leader)
			if len(batch) == 0 || batch[0] != leader {
				t.Fatal("the leader is not the first of its batch")
			}
			var accounts [2]string
			last := map[string]int{}
			for n, members := range [][]*member{batch[1:], g.waiting} {
				for _, m := range members {
					at := slices.Index(came, m)
					if before, known := last[m.request.Identity.AccountID]; known && before >= at {
						t.Fatalf("request %d of %s comes after request %d", at, m.request.Identity.AccountID, before)
					}
					last[m.request.Identity.AccountID] = at
					accounts[n] += m.request.Identity.AccountID
				}
			}
			if diff := cmp.Diff([2]string{c.next, c.then}, accounts); diff != "" {
				t.Errorf("the accounts in the batch, and of those that wait on (-want +got):\n%s", diff)
			}
		})
	}
}
