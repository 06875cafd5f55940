package faults_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// kind is what a client of a workload does.
type kind int

const (
	// reads list the account's newest intent.
	reads kind = iota
	// writes make an intent, without Idempotency-Key.
	writes
	// keyedWrites make an intent, with one.
	keyedWrites
	kinds
)

func (k kind) String() string { return [kinds]string{"GET", "POST", "POST with key"}[k] }

// attempt is one request of a workload and what became of it.
type attempt struct {
	kind    kind
	gateway int
	// reference is the intent's that it was to make.
	reference string
	began     time.Time
	took      time.Duration
	status    int // 0 without an answer
	// fault is what is wrong with the answer, whatever its status may be.
	fault string
}

func (a attempt) failed() bool { return a.status == 0 || a.status >= 500 }

// workload is clients that make one request after the other, each with an intent of its own, at most so many at a time. They go
// to any gateway that is theirs, as a balancer would: what cannot connect goes to the next.
type workload struct {
	t       *testing.T
	db      *database
	fleet   []*gateway
	keys    []string
	kinds   []kind
	client  *http.Client
	stopped chan struct{}
	members sync.WaitGroup
	turn    atomic.Int64
	// ready says of each gateway whether it is sent requests.
	ready []atomic.Bool
	// retries has failed keyed writes repeated until they are acknowledged.
	retries bool
	// pause is between the requests of one member.
	pause time.Duration

	mu       sync.Mutex
	attempts []attempt
	// acknowledged are intent ids by reference; asked has every reference that was ever sent.
	acknowledged map[string]string
	asked        map[string]kind
}

// newWorkload does nothing yet.
func newWorkload(t *testing.T, fleet []*gateway, does ...kind) *workload {
	t.Helper()
	return newWorkloadOn(t, shared.database, fleet, does...)
}

// newWorkloadOn is newWorkload for gateways whose cores are on this database.
func newWorkloadOn(t *testing.T, db *database, fleet []*gateway, does ...kind) *workload {
	t.Helper()
	pause := 20 * time.Millisecond
	if *strict {
		pause /= 2
	}
	c := &workload{
		t: t, db: db, fleet: fleet, keys: db.newBoundlessKeys(t, 4), kinds: does, stopped: make(chan struct{}), pause: pause,
		client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}},
		ready:  make([]atomic.Bool, len(fleet)), acknowledged: map[string]string{}, asked: map[string]kind{},
	}
	for n := range c.ready {
		c.ready[n].Store(true)
	}
	return c
}

// set has so many members work until stop.
func (c *workload) set(members int) {
	for n := range members {
		c.members.Go(func() { c.work(c.kinds[n%len(c.kinds)], c.keys[n%len(c.keys)]) })
	}
	c.t.Cleanup(func() { c.stop() })
}

// stop ends the work, waits for the last answer and returns all attempts.
func (c *workload) stop() attempts {
	select {
	case <-c.stopped:
	default:
		close(c.stopped)
	}
	c.members.Wait()
	c.client.CloseIdleConnections()
	return c.soFar()
}

func (c *workload) soFar() attempts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.attempts)
}

func (c *workload) over() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

func (c *workload) work(k kind, key string) {
	ticker := time.NewTicker(c.pause)
	defer ticker.Stop()
	for !c.over() {
		reference := uuid.NewString()
		for {
			a := c.try(k, key, reference)
			if !a.failed() || !c.retries || k != keyedWrites {
				break
			}
			<-ticker.C
			if c.over() {
				return
			}
		}
		<-ticker.C
	}
}

// givenUp counts the keyed writes that had failed when the work ended.
func (c *workload) givenUp() (count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for reference, k := range c.asked {
		if k == keyedWrites && c.acknowledged[reference] == "" {
			count++
		}
	}
	return count
}

// try makes one request and notes what it came to.
func (c *workload) try(k kind, key, reference string) attempt {
	a := attempt{kind: k, reference: reference, began: time.Now()}
	var id string
	for _, a.gateway = range c.choose() {
		var err error
		if a.status, id, a.fault, err = c.ask(a, key); !isRefusedDial(err) {
			break
		}
	}
	a.took = time.Since(a.began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = append(c.attempts, a)
	if k != reads {
		c.asked[reference] = k
	}
	if id != "" {
		if other, known := c.acknowledged[reference]; known && other != id {
			c.t.Errorf("%s was acknowledged as %s and as %s", reference, other, id)
		}
		c.acknowledged[reference] = id
	}
	return a
}

// choose goes round the gateways: those that are ready first, and then the others.
func (c *workload) choose() (order []int) {
	turn := int(c.turn.Add(1))
	for _, ready := range []bool{true, false} {
		for n := range c.fleet {
			if n = (turn + n) % len(c.fleet); c.ready[n].Load() == ready {
				order = append(order, n)
			}
		}
	}
	return order
}

// followReadiness has the workload go by the gateways' /readyz until the test ends, as a balancer does.
func (c *workload) followReadiness() {
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	for n, g := range c.fleet {
		following.Go(func() {
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			for ctx.Err() == nil {
				c.ready[n].Store(isOK(c.t, g.opsURL+"/readyz"))
				<-ticker.C
			}
		})
	}
	c.t.Cleanup(func() {
		stop()
		following.Wait()
	})
}

// startBeside sends the fleet, beside a workload, requests of a key beyond its limit and what needs neither Redis nor core.
func startBeside(t *testing.T, fleet []*gateway) *load {
	t.Helper()
	return startLoad(t, fleet, stream{keys: newKeys(t, 1), rate: 20}, controlStream)
}

// endBeside fails the test if the key went over its limit, and returns by how many requests, and the judge of latencies.
func endBeside(t *testing.T, l *load) (over int, j judge) {
	t.Helper()
	all := l.stop()
	if over = max(0, all.of(0).overAdmission()); over > 0 {
		t.Errorf("one key had %d requests too many", over)
	}
	return over, newJudge(t, all.of(1))
}
