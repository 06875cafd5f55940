package identity

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"intents.internal/pkg/tokenbucket"
)

// memoryBuckets bounds the buckets in memory, about 200 bytes each. An evicted bucket counts as full.
const memoryBuckets = 1 << 16

// memory stores when each bucket will be full, its theoretical arrival time.
type memory struct {
	mu  sync.Mutex
	tat *simplelru.LRU[string, time.Time]
}

func newMemory() *memory {
	tat, err := simplelru.NewLRU[string, time.Time](memoryBuckets, nil)
	if err != nil {
		panic(err) // it is for a size below 1
	}
	return &memory{tat: tat}
}

// take takes one token from each of the buckets and returns 0, or takes none and returns the time until it could.
func (m *memory) take(buckets ...tokenbucket.Bucket) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, after := time.Now(), make([]time.Time, len(buckets))
	for i, bucket := range buckets {
		tat, _ := m.tat.Get(bucket.Name)
		var late time.Duration
		after[i], late = bucket.Rule.Spend(tat, now)
		wait = max(wait, late)
	}
	if wait > 0 {
		return wait
	}
	for i, bucket := range buckets {
		m.tat.Add(bucket.Name, after[i])
	}
	return 0
}

// reset fills a bucket.
func (m *memory) reset(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tat.Remove(name)
}

// refund returns one token to a bucket.
func (m *memory) refund(bucket tokenbucket.Bucket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if tat, found := m.tat.Get(bucket.Name); found {
		emission, _ := bucket.Rule.Intervals()
		m.tat.Add(bucket.Name, tat.Add(-emission))
	}
}
