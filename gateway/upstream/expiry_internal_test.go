package upstream

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/wire"
)

// A core that stalls in the middle of a frame ends the members whose time is over, each at its own deadline, whosever the frame is. The others
// get their responses once core goes on.
func TestBatch_StallInFrame(t *testing.T) {
	t.Parallel()
	client := New(Options{Timeout: time.Second, MaxConns: 1, Metrics: prometheus.NewRegistry()})
	left := []time.Duration{2 * time.Second, 20 * time.Second, time.Second, 20 * time.Second}
	const stall = 5 * time.Second
	for first := range left { // the member whose frame is stalled, and the first that reads
		for part, at := range map[string]int{"head": wire.FrameHeadBytes / 2, "content": wire.FrameHeadBytes + 5} {
			t.Run(fmt.Sprintf("%s of %d", part, first), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					here, there := net.Pipe()
					defer there.Close()
					b := sentBatch(client, here, left...)
					conn, began := b.conn, time.Now()
					frames := framesFrom(first, len(left))
					var ended sync.WaitGroup
					ended.Go(func() {
						_, _ = fmt.Fprintf(there, "HTTP/1.1 200 OK\r\nX-Core: answered\r\nContent-Length: %d\r\n\r\n%s", len(frames), frames[:at])
						<-time.After(stall) // in the time of the bubble
						_, _ = there.Write(frames[at:])
					})
					for n, m := range slices.Clone(b.members) {
						ended.Go(func() {
							await := m.awaitEnd
							if n == first {
								await = func() attempt { return b.read(m) }
							}
							got, took := await(), time.Since(began)
							if left[n] < stall {
								if !errors.Is(got.err, ErrTimeout) || took != left[n] {
									t.Errorf("member %d, which had %s, ended after %s: %v", n, left[n], took, got.err)
								}
							} else if text := string(m.response.Body); got.err != nil || text != fmt.Sprint(n) || took != stall {
								t.Errorf("member %d, which had %s, ended after %s: %q, %v", n, left[n], took, text, got.err)
							}
						})
					}
					ended.Wait()
					conn.pool.close()
				})
			})
		}
	}
}

// framesFrom is the response of core to so many members, in the order of their numbers from the first on.
func framesFrom(first, members int) (frames []byte) {
	for n := range members {
		number := (first + n) % members
		message := wire.AppendBody(wire.AppendField(nil, wire.FieldStatus, "200"), fmt.Sprint(number))
		frames = wire.AppendFrame(frames, number, message)
	}
	return frames
}

// A request whose time is nearly over is sent alone, whether it leads or waits, so that the sending of the others has the time that they have. One
// whose time is over is not sent.
func TestGroup_NearlyExpired(t *testing.T) {
	t.Parallel()
	const timeout = 20 * time.Second
	left := map[byte]time.Duration{'a': timeout, 'b': timeout, 'n': dialTimeout, 'm': dialTimeout / 2, 'o': 0}
	for name, c := range map[string]struct {
		waiting string
		want    []string
	}{
		"others wait with one":      {waiting: "anb", want: []string{"ab 20s", "n 1s"}},
		"one leads":                 {waiting: "nab", want: []string{"n 1s", "ab 20s"}},
		"several":                   {waiting: "anmb", want: []string{"ab 20s", "n 1s", "m 500ms"}},
		"the time of one is over":   {waiting: "aob", want: []string{"ab 20s"}},
		"nobody has more time left": {waiting: "nm", want: []string{"n 1s", "m 500ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				now, g, names := time.Now(), &group{core: &cores.Core{}, ofAccount: map[string]int{}}, map[*member]string{}
				for _, who := range []byte(c.waiting) {
					deadline := now.Add(left[who])
					m := &member{
						request: &Request{}, buffer: new([]byte), notified: make(chan notification, 3), options: attemptOptions{began: deadline.Add(-timeout), deadline: deadline},
					}
					names[m] = string(who)
					g.waiting = append(g.waiting, m)
				}
				over := slices.Clone(g.waiting)
				var sent []string
				for len(g.waiting) > 0 {
					b := batch{members: g.take(g.waiting[0])}
					who := ""
					for _, m := range b.members {
						who += names[m]
					}
					sent = append(sent, fmt.Sprintf("%s %s", who, b.deadline().Sub(now)))
				}
				if diff := cmp.Diff(c.want, sent); diff != "" {
					t.Errorf("sent together, with the time of the sending (-want +got):\n%s", diff)
				}
				for _, m := range over {
					if isOver := errors.Is(m.got.err, errNoTime); isOver != (names[m] == "o") {
						t.Errorf("%s: %v", names[m], m.got.err)
					}
				}
			})
		})
	}
}
