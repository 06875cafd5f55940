package settings

import (
	"reflect"
	"regexp"
	"strings"
)

// readFile parses the file that the variable names. An entry for an unknown variable is a fault.
func readFile(text, variable string, known map[string]reflect.StructField, faults *Faults) (entries map[string]string) {
	entries, seen := map[string]string{}, map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		name, value, fault := entry(line)
		_, isSetting := known[name]
		switch {
		case fault != "":
			faults.Add(variable, "line %d: %s", i+1, fault)
		case name == "":
		case name == variable:
			faults.Add(variable, "line %d: %s is read from the environment alone", i+1, name)
		case !isSetting:
			faults.Add(variable, "line %d: %s", i+1, unknown(name, known))
		case seen[name] > 0:
			faults.Add(variable, "line %d: %s is set in line %d already", i+1, name, seen[name])
		default:
			seen[name], entries[name] = i+1, value
		}
	}
	return entries
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
