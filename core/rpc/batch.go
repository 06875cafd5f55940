package rpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// send sends calls in one request. If the node rejects so many calls at once, or the response is too large, it sends them again in
// halves, down to single calls. A response that is too large for one call is the error of that call, and so is one of what a user has
// chosen that takes too long, see isolateSlow.
func (p *Provider) send(ctx context.Context, calls []*call) error {
	err := p.request(ctx, calls)
	if tookTooLong(ctx, calls, err) {
		return p.isolateSlow(ctx, calls, err)
	}
	if len(calls) == 1 {
		if errors.Is(err, ErrTooLarge) {
			calls[0].err = err
			return nil
		}
		return err
	}
	if err == nil {
		return p.sendTooLarge(ctx, calls)
	}
	if !splittable(err) {
		return err
	}
	first, second := calls[:len(calls)/2], calls[len(calls)/2:]
	if halfErr := p.send(ctx, first); halfErr != nil {
		return halfErr
	}
	if !errors.Is(err, ErrTooLarge) && slices.ContainsFunc(first, func(c *call) bool { return c.err == nil }) {
		p.health.limitBatch(len(calls))
	}
	for len(second) > 0 {
		chunk := second[:min(len(second), max(1, p.health.batchSize()))]
		second = second[len(chunk):]
		if err := p.send(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// sendTooLarge sends those calls again that a node left out of the response to a batch because of its size.
func (p *Provider) sendTooLarge(ctx context.Context, calls []*call) error {
	again := slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return !errors.Is(c.err, ErrTooLarge) })
	switch len(again) {
	case 0:
		return nil
	case len(calls):
		if err := p.send(ctx, again[:len(again)/2]); err != nil {
			return err
		}
		return p.send(ctx, again[len(again)/2:])
	default:
		return p.send(ctx, again)
	}
}

// tookTooLong reports whether calls whose contents users choose took the time of a request, and not that of the context.
func tookTooLong(ctx context.Context, calls []*call, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && allChosenByUsers(calls)
}

func allChosenByUsers(calls []*call) bool {
	return !slices.ContainsFunc(calls, func(c *call) bool { return !c.chosenByUsers() })
}

// isolateSlow finds the calls that take too long by sending halves at once, down to single calls: the timeout is their error. All that
// takes less than three times the time of a request. A node that does not answer a small call either is down, which is the returned
// error.
func (p *Provider) isolateSlow(ctx context.Context, calls []*call, err error) error {
	patience := p.client.Timeout / 2
	probe, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.verify(probe) != nil {
		return err
	}
	return p.sendHalves(ctx, calls, err, patience)
}

// sendHalves sends the halves of calls that failed with a timeout. The halves have so much time, and theirs half of it.
func (p *Provider) sendHalves(ctx context.Context, calls []*call, timeout error, patience time.Duration) error {
	if len(calls) == 1 {
		calls[0].err = timeout
		return nil
	}
	var group sync.WaitGroup
	halves := [...][]*call{calls[:len(calls)/2], calls[len(calls)/2:]}
	var errs [len(halves)]error
	for n, half := range halves {
		group.Go(func() {
			timed, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			errs[n] = p.send(timed, half)
			if errors.Is(errs[n], context.DeadlineExceeded) && ctx.Err() == nil {
				errs[n] = p.sendHalves(ctx, half, errs[n], max(patience/2, p.client.Timeout/minPatience))
			}
		})
	}
	group.Wait()
	return errors.Join(errs[:]...)
}

// minPatience is the part of a request's time that every call has at least.
const minPatience = 5

// splittable reports whether fewer calls at once may succeed: the response is too large, or the node rejects the batch as a whole,
// for its length or for a reason that is not known.
func splittable(err error) bool {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, errBatch) {
		return true
	}
	node, ok := errors.AsType[*Error](err)
	return ok && node.kind == nil
}

// Fetch sends one call and returns its result.
func Fetch[T any](ctx context.Context, p *Provider, c *Call[T]) (T, error) {
	_ = p.Do(ctx, c) // Result returns the same error
	return c.Result()
}

// Result is the result of the call for one item, or its error.
type Result[T any] struct {
	Value T
	Err   error
	// Bytes is the size of the result as it was sent.
	Bytes int
}

// FetchEach sends a call for each item and returns the answers in the items' order. The error of an item is in its answer: the node
// has pruned what it needs, or its result cannot be decoded. The returned error is of the provider: it did not answer, or it
// rejects calls for their rate. Without items it sends nothing.
func FetchEach[Item, T any](ctx context.Context, p *Provider, items []Item, call func(Item) *Call[T]) ([]Result[T], error) {
	if len(items) == 0 {
		return nil, nil
	}
	calls := make([]*Call[T], len(items))
	requests := make([]Request, len(items))
	for n, item := range items {
		calls[n] = call(item)
		requests[n] = calls[n]
	}
	if err := p.Do(ctx, requests...); err != nil {
		return nil, err
	}
	answers := make([]Result[T], len(items))
	for n, c := range calls {
		answers[n].Value, answers[n].Err = c.Result()
		answers[n].Bytes = c.bytes
		if errors.Is(answers[n].Err, ErrRate) {
			return nil, answers[n].Err
		}
	}
	return answers, nil
}

// FetchAll is FetchEach for items that are of use only together: it returns the results, or the first error.
func FetchAll[Item, T any](ctx context.Context, p *Provider, items []Item, call func(Item) *Call[T]) ([]T, error) {
	answers, err := FetchEach(ctx, p, items, call)
	if err != nil || len(answers) == 0 {
		return nil, err
	}
	results := make([]T, len(answers))
	for n, a := range answers {
		if a.Err != nil {
			return nil, a.Err
		}
		results[n] = a.Value
	}
	return results, nil
}
