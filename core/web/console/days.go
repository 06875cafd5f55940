package console

import (
	"net/http"
	"time"
)

// days reads the fields since and until of a list's query, each a day in UTC: since is when the first begins and until when the last has ended,
// zero for none. Anything else is an error of its field.
func (f *form) days() (since, until time.Time) {
	for name, at := range map[string]*time.Time{"since": &since, "until": &until} {
		given := f.values[name]
		if given == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, given)
		if err != nil || day.Year() < 1970 {
			f.add(pageError{status: http.StatusBadRequest, Field: name, Text: "This is not a date such as 2026-11-29."})
			continue
		}
		*at = day
	}
	if !until.IsZero() {
		until = until.AddDate(0, 0, 1)
	}
	return since, until
}
