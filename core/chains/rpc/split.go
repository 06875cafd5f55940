package rpc

import (
	"context"
	"errors"
	"slices"
)

// send sends calls in one request. If the node rejects so many calls at once, or the response is too large, it sends them again in
// halves, down to single calls. A response that is too large for one call is the error of that call.
func (p *Provider) send(ctx context.Context, calls []*call) error {
	err := p.request(ctx, calls)
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

// splittable reports whether fewer calls at once may succeed: the response is too large, or the node rejects the batch as a whole,
// for its length or for a reason that is not known.
func splittable(err error) bool {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, errBatch) {
		return true
	}
	node, ok := errors.AsType[*Error](err)
	return ok && node.kind == nil
}
