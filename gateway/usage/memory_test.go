package usage_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"intents.internal/gateway/usage"
)

// rowBytes is what Options.Backlog and GATEWAY_USAGE_BACKLOG say that a row takes.
const rowBytes = 200

func TestCounter_Memory(t *testing.T) { //nolint:paralleltest // it measures this process's memory
	if got := unsafe.Sizeof(usage.Counter{}); got != 48 {
		t.Errorf("a counter takes %d bytes, stated are 48", got)
	}
	const rows = 200_000
	r := newRecorder(&core{}, time.Minute, rows)
	before := heap()
	for n := range rows + 1000 {
		verdict := fmt.Sprintf("key:%036d%036d", n, n) // the whole text stays with the key's id in it
		r.Count(counter(verdict[4:40]), usage.Accepted, time.Now())
	}
	r.Gather()
	each := (heap() - before) / rows
	t.Logf("%.0f bytes a row", each)
	if waiting := r.metric(t, "intents_gateway_usage_waiting"); waiting != rows || each > rowBytes {
		t.Errorf("%v rows of %.0f bytes wait, stated are %d of %d", waiting, each, rows, rowBytes)
	}
	if limit := r.metric(t, "intents_gateway_usage_waiting_limit"); limit != rows {
		t.Errorf("%v rows may wait, it says, and %d may", limit, rows)
	}
	runtime.KeepAlive(r)
}

// heap is what is in use, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what the first one freed of pools and finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
