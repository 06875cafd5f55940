package screening

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"intents.internal/core/postgres"
	"intents.internal/pkg/background"
)

const (
	// maxHits bounds the hits that wait to be written.
	maxHits = 4096
	// hitsBatch bounds the hits of one transaction.
	hitsBatch = 500
	// hitsEvery is how long a hit waits for others, and the pause after a write that failed.
	hitsEvery = time.Second
)

// hits wait to be written.
type hits struct {
	mu      sync.Mutex
	waiting []waitingHit
}

type waitingHit struct {
	Hit
	// counts is set for one hit of each refusal, which the account's audit log counts.
	counts bool
}

// add queues a hit, unless the queue is full.
func (h *hits) add(one Hit, counts bool) (added bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) >= maxHits {
		return false
	}
	h.waiting = append(h.waiting, waitingHit{one, counts})
	return true
}

// RunHits writes hits until ctx ends, and then the rest.
func (s *Screen) RunHits(ctx context.Context) {
	job := background.Job{Name: "write hits of the screening list", Every: hitsEvery, Level: slog.LevelWarn}
	background.Repeat(ctx, s.Log, job, func() (more bool, err error) { return s.WriteHits(ctx) })
	rest := context.WithoutCancel(ctx)
	for more, err := s.WriteHits(rest); more && err == nil; {
		more, err = s.WriteHits(rest)
	}
}

// WriteHits writes the hits that wait, hitsBatch at most. They wait on if the database does not answer.
func (s *Screen) WriteHits(ctx context.Context) (more bool, err error) {
	s.hits.mu.Lock()
	batch := slices.Clone(s.hits.waiting[:min(len(s.hits.waiting), hitsBatch)])
	s.hits.mu.Unlock()
	if len(batch) == 0 {
		return false, nil
	}
	var all, counted []Hit
	for _, w := range batch {
		all = append(all, w.Hit)
		if w.counts {
			counted = append(counted, w.Hit)
		}
	}
	err = s.Store.InsertHits(ctx, all, counted)
	if err != nil && !postgres.IsRowFault(err) {
		return false, err
	}
	if err != nil {
		s.metrics.dropped.Add(float64(len(batch)))
		err = errors.New("the database refuses hits of the screening list, which are dropped: SQLSTATE " + postgres.SQLState(err)) // its text may have an address
	}
	s.hits.mu.Lock()
	defer s.hits.mu.Unlock()
	s.hits.waiting = slices.Delete(s.hits.waiting, 0, len(batch))
	return len(s.hits.waiting) > 0, err
}
