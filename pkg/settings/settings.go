// Package settings reads a service's settings from its environment and from a file whose entries override the environment.
//
// It owns the file format. Its errors list all faults at once and contain no values.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Read parses the environment, overridden by the entries of the file that the variable names. If the variable is unset, there is
// no file. C is a struct whose fields name their variables by env tags. parse reads and checks all of them, and its error has one
// line per fault.
func Read[C any](environment map[string]string, variable string, parse func(map[string]string) (C, error)) (C, error) {
	path := environment[variable]
	if path == "" {
		return parse(environment)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		var none C
		return none, fmt.Errorf("%s cannot be read: %w", variable, err)
	}
	entries, faults := entriesOf(string(text), variable, variables[C]())
	all := maps.Clone(environment)
	maps.Copy(all, entries)
	config, err := parse(all)
	return config, errors.Join(append(faults, err)...)
}

// entriesOf parses the file that the variable names. An entry for an unknown variable is a fault.
func entriesOf(text, variable string, known []string) (entries map[string]string, faults []error) {
	entries, seen := map[string]string{}, map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		name, value, fault := entry(line)
		switch {
		case fault != "":
		case name == "":
			continue
		case name == variable:
			fault = name + " is read from the environment alone"
		case !slices.Contains(known, name):
			fault = "there is no setting " + name
		case seen[name] > 0:
			fault = fmt.Sprintf("%s is set in line %d already", name, seen[name])
		}
		if fault != "" {
			faults = append(faults, fmt.Errorf("%s line %d: %s", variable, i+1, fault))
			continue
		}
		seen[name], entries[name] = i+1, value
	}
	return entries, faults
}

var variableName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// entry parses one line. It rejects quotes, because many formats remove them and this one does not.
func entry(line string) (name, value, fault string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", "", ""
	}
	name, value, found := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !found || !variableName.MatchString(name):
		return "", "", "must be NAME=value, empty, or begin with #"
	case strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "'"):
		return "", "", name + " is quoted: values are taken as they are, leave the quotes out"
	}
	return name, value, ""
}

// variables returns the variables of C's fields.
func variables[C any]() []string {
	var all []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[C]()) {
		if name := field.Tag.Get("env"); name != "" {
			all = append(all, name)
		}
	}
	return all
}
