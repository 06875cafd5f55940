package usage

import "time"

// Gather is what Run does when it is time, for tests that want it more often.
func (r *Recorder) Gather() { r.gather(time.Now()) }
