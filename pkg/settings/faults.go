package settings

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Faults are what is wrong with a service's settings, in the order in which it was found. The zero value has none.
type Faults struct{ all []fault }

// fault is what is wrong with one variable; the text names it.
type fault struct{ variable, text string }

// Add adds a fault of a variable. The format follows the variable, as in "must be host:port, not %q", and must not show a secret.
func (f *Faults) Add(variable, format string, args ...any) {
	f.add(variable, variable+" "+fmt.Sprintf(format, args...))
}

// AddError adds an error about a variable, such as one about the file that it names. It does nothing for a nil error.
func (f *Faults) AddError(variable string, err error) {
	if err != nil {
		f.add(variable, fmt.Sprintf("%s: %v", variable, err))
	}
}

// Expect adds a fault of a variable unless ok.
func (f *Faults) Expect(ok bool, variable, format string, args ...any) {
	if !ok {
		f.Add(variable, format, args...)
	}
}

// Address expects host:port.
func (f *Faults) Address(variable, value string) {
	_, _, err := net.SplitHostPort(value)
	f.Expect(err == nil, variable, "must be host:port, not %q", value)
}

// Duration expects a duration of these bounds; the upper one is 0 for none.
func (f *Faults) Duration(variable string, value, least, most time.Duration) {
	bounds := "at least " + plain(least)
	if most > 0 {
		bounds = plain(least) + " to " + plain(most)
	}
	f.Expect(value >= least && (most == 0 || value <= most), variable, "must be %s, not %s", bounds, value)
}

// Number expects a number of these bounds; the upper one is 0 for none.
func (f *Faults) Number(variable string, value, least, most int) {
	bounds := fmt.Sprintf("at least %d", least)
	if most > 0 {
		bounds = fmt.Sprintf("%d to %d", least, most)
	}
	f.Expect(value >= least && (most == 0 || value <= most), variable, "must be %s, not %d", bounds, value)
}

// Err returns an error with one line per fault, nil without any.
func (f *Faults) Err() error {
	errs := make([]error, len(f.all))
	for i, fault := range f.all {
		errs[i] = errors.New(fault.text)
	}
	return errors.Join(errs...)
}

func (f *Faults) add(variable, text string) { f.all = append(f.all, fault{variable, text}) }

// addOthers adds the faults of variables that have none so far.
func (f *Faults) addOthers(others Faults) {
	before := f.all
	for _, o := range others.all {
		if !slices.ContainsFunc(before, func(b fault) bool { return b.variable == o.variable }) {
			f.all = append(f.all, o)
		}
	}
}

// plain formats a duration as settings write it, 1m and not 1m0s.
func plain(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
