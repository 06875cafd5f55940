package cores

import "sync"

// PerCore holds a value for each core of a set. It is safe for concurrent use.
type PerCore[T any] struct {
	values sync.Map // of T, by *Core
}

// For creates a value for every core with open, and passes it to shut after the core was removed.
func For[T any](s *Set, open func(*Core) T, shut func(*Core, T)) *PerCore[T] {
	p := &PerCore[T]{}
	s.subscribe(func(c *Core) (leave func()) {
		value := open(c)
		p.values.Store(c, value)
		return func() {
			p.values.Delete(c)
			shut(c, value)
		}
	})
	return p
}

// Get returns the core's value, or false if the core was removed.
func (p *PerCore[T]) Get(c *Core) (value T, ok bool) {
	found, ok := p.values.Load(c)
	if !ok {
		return value, false
	}
	value, ok = found.(T)
	return value, ok
}

// Each calls do with every value.
func (p *PerCore[T]) Each(do func(T)) {
	p.values.Range(func(_, found any) bool {
		if value, ok := found.(T); ok {
			do(value)
		}
		return true
	})
}
