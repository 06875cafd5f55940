package cores

import "sync"

// PerCore holds something for each core of a set. It is safe for concurrent use.
type PerCore[T any] struct {
	values sync.Map // of T, by *Core
}

// For has open make it for every core, and shut undo it when the core has left the set.
func For[T any](s *Set, open func(*Core) T, shut func(*Core, T)) *PerCore[T] {
	p := &PerCore[T]{}
	s.Each(func(c *Core) (leave func()) {
		value := open(c)
		p.values.Store(c, value)
		return func() {
			p.values.Delete(c)
			shut(c, value)
		}
	})
	return p
}

// Of is what there is for a core; false where the core has left the set.
func (p *PerCore[T]) Of(c *Core) (value T, ok bool) {
	found, ok := p.values.Load(c)
	if !ok {
		return value, false
	}
	value, ok = found.(T)
	return value, ok
}

// All calls do for every core.
func (p *PerCore[T]) All(do func(T)) {
	p.values.Range(func(_, found any) bool {
		if value, ok := found.(T); ok {
			do(value)
		}
		return true
	})
}
