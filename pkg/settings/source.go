// Package settings reads a service's settings from its environment and from a file whose entries lie over it, and follows
// that file while the service runs, so that secrets and limits change without a restart.
//
// It owns the form of the file, when it is read again, and the rule of what may change: fields that bear the tag reload, and
// no others. It refuses a file of which any part is wrong, and then keeps all that was set before. No error or log line of
// its own tells a value.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// maxFileBytes bounds the file; all settings of a service take a few kilobytes.
const maxFileBytes = 1 << 20

// Source is where the settings C come from. C is a struct whose fields name their variables by env tags.
type Source[C any] struct {
	// Variable is the setting that names the file, which is read from the environment alone. Where it is not set there is no
	// file.
	Variable string
	// Environment is what lies beneath the file.
	Environment map[string]string
	// Parse reads and checks all settings; its error has a line for each fault.
	Parse func(map[string]string) (C, error)
}

// Reading is the settings as they were read once.
type Reading[C any] struct {
	Config C
	source Source[C]
	file   file
}

// Read reads the settings. A file that is not there counts as empty, since it may be made later; one that cannot be read, or
// has a fault, is an error.
func (s Source[C]) Read() (Reading[C], error) {
	r := Reading[C]{source: s, file: s.look()}
	var err error
	r.Config, err = s.parse(r.file)
	return r, err
}

// Path is the file, empty for none.
func (r Reading[C]) Path() string { return r.source.path() }

// Found reports whether the file was there.
func (r Reading[C]) Found() bool { return r.Path() != "" && !r.file.absent }

func (s Source[C]) path() string { return s.Environment[s.Variable] }

// file is what a look at the file has shown. Two that are equal need not both be parsed.
type file struct {
	text   string
	absent bool
	// fault is why it could not be read.
	fault string
}

// look reads the file whole, every time: what mounts Secrets swaps a link, and then neither the name nor the time of the
// file's last change need be others.
func (s Source[C]) look() file {
	if s.path() == "" {
		return file{absent: true}
	}
	text, err := os.ReadFile(s.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file{absent: true}
	case err != nil:
		return file{fault: "cannot be read: " + err.Error()}
	case len(text) > maxFileBytes:
		return file{fault: fmt.Sprintf("has %d bytes, %d are allowed", len(text), maxFileBytes)}
	}
	return file{text: string(text)}
}

// parse lays the file over the environment.
func (s Source[C]) parse(f file) (C, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(s.Variable+" "+format, args...))
	}
	if f.fault != "" {
		fault("%s", f.fault)
		var none C
		return none, errors.Join(faults...)
	}
	all, known, seen := maps.Clone(s.Environment), variables[C](), map[string]int{}
	for i, line := range strings.Split(f.text, "\n") {
		name, value, faulty := entry(line)
		switch {
		case faulty != "":
			fault("line %d: %s", i+1, faulty)
		case name == "":
		case name == s.Variable:
			fault("line %d: %s is read from the environment alone", i+1, name)
		case !slices.Contains(known, name):
			fault("line %d: there is no setting %s", i+1, name)
		case seen[name] > 0:
			fault("line %d: %s is set in line %d already", i+1, name, seen[name])
		default:
			seen[name], all[name] = i+1, value
		}
	}
	config, err := s.Parse(all)
	return config, errors.Join(append(faults, err)...)
}

var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// entry reads one line. Values are taken as they are, which is not what everybody makes of quotes: so these are refused.
func entry(line string) (name, value, fault string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", "", ""
	}
	name, value, found := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !found || !variable.MatchString(name):
		return "", "", "must be NAME=value, empty, or begin with #"
	case strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "'"):
		return "", "", name + " is quoted: values are taken as they are, leave the quotes out"
	}
	return name, value, ""
}

// variables are those of C's fields.
func variables[C any]() []string {
	var all []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[C]()) {
		if name := field.Tag.Get("env"); name != "" {
			all = append(all, name)
		}
	}
	return all
}
