package api

import "time"

// workerIdle is how long a worker without work is kept.
const workerIdle = 10 * time.Second

// workers run functions on goroutines that are kept: new ones would grow their stacks anew, which was a fifth of core's CPU time.
type workers struct{ idle chan func() }

func newWorkers() *workers { return &workers{idle: make(chan func())} }

// run runs f at once, on an idle worker or on a new one.
func (w *workers) run(f func()) {
	select {
	case w.idle <- f:
	default:
		go w.work(f)
	}
}

func (w *workers) work(f func()) {
	f()
	timeout := time.NewTimer(workerIdle)
	defer timeout.Stop()
	for {
		select {
		case f := <-w.idle:
			f()
			timeout.Reset(workerIdle)
		case <-timeout.C:
			return
		}
	}
}
