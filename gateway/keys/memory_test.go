package keys_test

import (
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/control"
	"intents.internal/gateway/keys"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// verdictBytes is what Options.Capacity and GATEWAY_KEY_CACHE say that a verdict takes.
const verdictBytes = 360

// holding makes a verifier that holds up to capacity verdicts, and shows it n keys.
func holding(capacity, n int) *keys.Verifier {
	v := keys.New(keys.Options{
		Capacity: capacity, TTL: time.Hour, UnknownTTL: time.Hour, LookUpTimeout: time.Second, LookUps: 1,
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	for i := range n {
		id := uuid.NewString()
		v.Store(sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i))), control.Verification{VerifiedKey: wire.VerifiedKey{
			KeyID: id, AccountID: uuid.NewString(), LimitBucket: id, Environment: network.Test,
			Limit: wire.KeyLimit{Requests: 50, PeriodSeconds: 60},
		}})
	}
	return v
}

// heap is what is in use, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what the first one freed of pools and finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func TestVerdict_Memory(t *testing.T) { //nolint:paralleltest // it measures this process's memory
	const capacity = 100_000
	before := heap()
	v := holding(capacity, capacity*3/2)
	held := v.Cached()
	each := (heap() - before) / float64(held)
	v.Close()
	t.Logf("%d verdicts of %.0f bytes", held, each)
	if held > capacity {
		t.Errorf("%d verdicts are held, at most %d may be", held, capacity)
	}
	if held < capacity*9/10 || each > verdictBytes {
		t.Errorf("%d verdicts take %.0f bytes each, stated are %d", held, each, verdictBytes)
	}
}

func BenchmarkVerdictMemory(b *testing.B) {
	const capacity = 1_000_000
	for b.Loop() {
		before := heap()
		v := holding(capacity, capacity)
		held := v.Cached()
		b.ReportMetric((heap()-before)/float64(held), "bytes/verdict")
		b.ReportMetric(float64(held), "verdicts")
		v.Close()
	}
}
