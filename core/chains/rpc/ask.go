package rpc

import (
	"context"
	"errors"
)

// Ask sends one call and returns its result.
func Ask[T any](ctx context.Context, p *Provider, c *Call[T]) (T, error) {
	_ = p.Do(ctx, c) // Result returns the same error
	return c.Result()
}

// Answer is the result of the call for one item, or its error.
type Answer[T any] struct {
	Value T
	Err   error
}

// AskItems sends a call for each item and returns the answers in the items' order. The error of an item is in its answer: the node
// has pruned what it needs, or its result cannot be decoded. The returned error is of the provider: it did not answer, or it
// rejects calls for their rate. Without items it sends nothing.
func AskItems[Item, T any](ctx context.Context, p *Provider, items []Item, call func(Item) *Call[T]) ([]Answer[T], error) {
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
	answers := make([]Answer[T], len(items))
	for n, c := range calls {
		answers[n].Value, answers[n].Err = c.Result()
		if errors.Is(answers[n].Err, ErrRate) {
			return nil, answers[n].Err
		}
	}
	return answers, nil
}

// AskEach is AskItems for items that are of use only together: it returns the results, or the first error.
func AskEach[Item, T any](ctx context.Context, p *Provider, items []Item, call func(Item) *Call[T]) ([]T, error) {
	answers, err := AskItems(ctx, p, items, call)
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
