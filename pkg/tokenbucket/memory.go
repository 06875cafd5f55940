package tokenbucket

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Memory keeps buckets in this process instead of Redis: when each will be full, its theoretical arrival time. It is safe for
// concurrent use.
type Memory struct {
	mu  sync.Mutex
	tat *simplelru.LRU[string, time.Time]
}

// NewMemory returns a memory of at most size buckets, about 200 bytes each. The bucket that was used least recently is evicted,
// which counts as full.
func NewMemory(size int) *Memory {
	tat, err := simplelru.NewLRU[string, time.Time](size, nil)
	if err != nil {
		panic(err) // it is for a size below 1
	}
	return &Memory{tat: tat}
}

// Take takes one token from each of the buckets and returns 0, or takes none and returns the time until it could.
func (m *Memory) Take(buckets ...Bucket) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, quotas := time.Now(), make([]Quota, len(buckets))
	for i, bucket := range buckets {
		tat, _ := m.tat.Get(bucket.Name)
		if clamped := bucket.Rule.Clamp(tat, now); clamped != tat {
			tat = clamped
			m.tat.Add(bucket.Name, tat) // else it would be as empty after every wait
		}
		quotas[i] = bucket.Rule.Quota(tat, 1, now)
		if retry := quotas[i].RetryAfter; retry > 0 {
			wait = max(wait, retry, time.Millisecond)
		}
	}
	if wait > 0 {
		return wait
	}
	for i, bucket := range buckets {
		m.tat.Add(bucket.Name, quotas[i].Spend(1, now))
	}
	return 0
}

// Reset fills a bucket.
func (m *Memory) Reset(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tat.Remove(name)
}

// Refund returns one token to a bucket.
func (m *Memory) Refund(bucket Bucket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if tat, found := m.tat.Get(bucket.Name); found {
		emission, _ := bucket.Rule.Intervals()
		m.tat.Add(bucket.Name, bucket.Rule.Clamp(tat, time.Now()).Add(-emission))
	}
}
