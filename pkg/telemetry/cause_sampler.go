package telemetry

import (
	"sync"
	"time"
)

// maxCauses bounds the causes that a CauseSampler tells apart; all others share one line.
const maxCauses = 32

// CauseSampler is a Sampler for each cause of an error, so that an outage that fails every request takes one line per cause and
// interval. The cause is the text of the innermost error. It is safe for concurrent use.
type CauseSampler struct {
	// Every is the interval; zero allows every line.
	Every    time.Duration
	mu       sync.Mutex
	samplers map[string]*Sampler
}

// Due reports whether a line about an error may be written now, and how many of its cause were suppressed since the last one.
func (c *CauseSampler) Due(err error) (suppressed int64, due bool) {
	return c.sampler(innermost(err)).Due()
}

func (c *CauseSampler) sampler(cause string) *Sampler {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.samplers == nil {
		c.samplers = map[string]*Sampler{}
	}
	s, known := c.samplers[cause]
	if known {
		return s
	}
	if len(c.samplers) >= maxCauses {
		if s, known = c.samplers[""]; known {
			return s
		}
		cause = ""
	}
	s = &Sampler{Every: c.Every}
	c.samplers[cause] = s
	return s
}

// innermost returns the text of the error that the others wrap, the first if one wraps several.
func innermost(err error) string {
	for err != nil {
		var next error
		switch wrapper := err.(type) { //nolint:errorlint // it unwraps
		case interface{ Unwrap() error }:
			next = wrapper.Unwrap()
		case interface{ Unwrap() []error }:
			if all := wrapper.Unwrap(); len(all) > 0 {
				next = all[0]
			}
		}
		if next == nil {
			return err.Error()
		}
		err = next
	}
	return ""
}
