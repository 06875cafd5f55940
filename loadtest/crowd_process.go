package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"intents.internal/pkg/embedded"
)

// A crowd is a process of its own, so that its CPU time can be told apart, and takes only what nobody else wants: the
// computers of real attackers are elsewhere.

// gang is a crowd under way.
type gang struct {
	process *embedded.Process
	mu      sync.Mutex
	said    []string
	// there is closed when all of it has gathered.
	there chan struct{}
	// tell makes a few words of what it said last, on what became of it.
	tell func(lines []string) (string, error)
	// leaves says that it ends by itself.
	leaves bool
}

// startLast starts a program that gets processor time only where nobody else wants it: as an idle one, which everyone of its
// session interrupts, in a session that counts least among the others (sched(7), autogroup).
func startLast(c embedded.Command) (*embedded.Process, error) {
	c.Args = append([]string{"--idle", "0", c.Path}, c.Args...)
	c.Path, c.Session = "chrt", true
	p, err := embedded.StartProcess(c)
	if err == nil {
		// Where there is no such file, nothing is shared out by session.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", p.PID()), []byte("19"), 0)
	}
	return p, err
}

// hear keeps what the crowd says.
func (g *gang) hear(line string) {
	if line == gathered {
		close(g.there)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.said = append(g.said, line)
}

// gatherTime bounds how long a crowd takes to assemble, and to part.
const gatherTime = time.Minute

// crowds are all kinds of crowds.
func (b *bench) crowds(ctx context.Context, f crowdFlags) ([]*crowdRow, error) {
	own, err := b.otherAccount(ctx)
	if err != nil {
		return nil, err
	}
	ours := func(name string, t orders) *crowdRow {
		t.Address = b.gatewayAddress
		return &crowdRow{Name: name, summon: func(ctx context.Context) (*gang, error) { return summon(ctx, t) }}
	}
	peer := func(name string, args ...string) *crowdRow {
		r := &crowdRow{Name: name}
		if path, err := exec.LookPath("slowhttptest"); err != nil {
			r.Missing = "slowhttptest is not installed"
		} else {
			r.summon = func(context.Context) (*gang, error) { return startSlowHTTPTest(path, f, args) }
		}
		return r
	}
	url := "http://" + b.gatewayAddress
	return []*crowdRow{
		ours(fmt.Sprintf("%d idle connections", f.idle), orders{Kind: "idle", Count: f.idle}),
		ours(fmt.Sprintf("%d silent connections", f.idle), orders{Kind: "silent", Count: f.idle}),
		ours(fmt.Sprintf("%d slow with headers", f.slow), orders{Kind: "headers", Count: f.slow}),
		ours(fmt.Sprintf("%d slow with bodies", f.slow), orders{Kind: "bodies", Count: f.slow, Keys: own}),
		ours(fmt.Sprintf("%d slow readers", f.slow), orders{Kind: "readers", Count: f.slow, Keys: own}),
		peer("slowhttptest, headers", "-H", "-u", url+"/v2/tokens"),
		peer("slowhttptest, bodies", "-B", "-u", url+"/auth/sign-in/email"),
		peer("slowhttptest, reading", "-X", "-w", "1", "-y", "512", "-z", "32", "-k", "5", "-u", url+"/openapi.json"),
		ours(fmt.Sprintf("%d malformed keys/s", f.flood), orders{Kind: "malformed", Count: floodConns, Rate: f.flood}),
		ours(fmt.Sprintf("%d unknown keys/s of one address", f.flood), orders{Kind: "unknown", Count: floodConns, Rate: f.flood}),
		ours(fmt.Sprintf("%d unknown keys/s of many addresses", f.flood), orders{Kind: "scattered", Count: floodConns, Rate: f.flood}),
		ours(fmt.Sprintf("%d connections opened and closed/s", f.storm), orders{Kind: "storm", Count: floodConns, Rate: f.storm}),
	}, nil
}

// floodConns is how many connections a flood comes on.
const floodConns = 64

// summon starts a crowd of this program's own and returns when it is there.
func summon(ctx context.Context, t orders) (*gang, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	g := &gang{there: make(chan struct{}), tell: tellThrong}
	g.process, err = startLast(embedded.Command{Name: "crowd", Path: self, Args: []string{"throng"}, Input: string(text), Output: g.hear})
	if err != nil {
		return nil, err
	}
	select {
	case <-g.there:
		return g, nil
	case <-g.process.Done():
		err = errors.Join(fmt.Errorf("it ended%s", g.process.Tail()), g.process.Err())
	case <-time.After(gatherTime):
		err = fmt.Errorf("it has not gathered within %s", gatherTime)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(fmt.Errorf("summon a crowd: %w", err), g.process.Stop(endSignal, time.Second))
}

// disperse ends a crowd and tells what became of it.
func (g *gang) disperse(ctx context.Context) (string, error) {
	if !g.leaves {
		if err := g.process.Stop(endSignal, gatherTime); err != nil {
			return "", err
		}
	}
	select {
	case <-g.process.Done():
	case <-time.After(gatherTime):
		return "", errors.New("the crowd does not end")
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if err := g.process.Err(); err != nil {
		return "", err
	}
	return g.tell(g.said)
}

func tellThrong(lines []string) (string, error) {
	var o thronged
	if len(lines) == 0 {
		return "", errors.New("the crowd says nothing")
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &o); err != nil {
		return "", fmt.Errorf("read what the crowd says: %w: %s", err, strings.Join(lines, "\n"))
	}
	return o.String(), nil
}

// startSlowHTTPTest starts the well-known tester, which opens so many connections a second that it goes on as long as the
// measurement.
func startSlowHTTPTest(path string, f crowdFlags, args []string) (*gang, error) {
	seconds := int(f.span.Seconds())
	g := &gang{tell: tellSlowHTTPTest, leaves: true}
	var err error
	g.process, err = startLast(embedded.Command{
		Name: "slowhttptest", Path: path,
		Args: append([]string{
			"-c", strconv.Itoa(f.slow), "-r", strconv.Itoa(max(1, f.slow/seconds)), "-i", "1", "-n", "1", "-p", "3",
			"-l", strconv.Itoa(seconds + int((2 * crowdTimeout).Seconds())),
		}, args...),
		Output: g.hear,
	})
	return g, err
}

var (
	colours     = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	statusLines = regexp.MustCompile(`^(connected|error|closed|service available|Exit status): *(.*)$`)
)

// tellSlowHTTPTest picks the last status out of what the tester printed.
func tellSlowHTTPTest(lines []string) (string, error) {
	last := map[string]string{}
	for _, line := range lines {
		if m := statusLines.FindStringSubmatch(strings.TrimSpace(colours.ReplaceAllString(line, ""))); m != nil {
			last[m[1]] = strings.TrimSpace(m[2])
		}
	}
	if last["Exit status"] == "" {
		return "", fmt.Errorf("slowhttptest said nothing that can be read:\n%s", strings.Join(lines, "\n"))
	}
	return fmt.Sprintf("it says: service available %s, %s", last["service available"], strings.ToLower(last["Exit status"])), nil
}
