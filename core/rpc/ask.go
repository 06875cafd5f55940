package rpc

import "context"

// Ask sends one call and returns its result.
func Ask[T any](ctx context.Context, p *Provider, c *Call[T]) (T, error) {
	_ = p.Do(ctx, c) // Result returns the same error
	return c.Result()
}

// AskEach sends a call for each item in one batch and returns the results in the items' order, or the first error. Without items
// it sends nothing.
func AskEach[Item, T any](ctx context.Context, p *Provider, items []Item, call func(Item) *Call[T]) ([]T, error) {
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
	results := make([]T, len(items))
	for n, c := range calls {
		var err error
		if results[n], err = c.Result(); err != nil {
			return nil, err
		}
	}
	return results, nil
}
