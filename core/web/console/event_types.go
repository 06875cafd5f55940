package console

import (
	"slices"
	"strings"

	"intents.internal/core/feed"
)

// typeField begins the names of the checkboxes of event types.
const typeField = "type:"

// typeNames are what the checkboxes stand for: the patterns of all types of a subject, then the types.
func typeNames() []string {
	names := feed.Patterns()
	for _, t := range feed.Types() {
		names = append(names, string(t))
	}
	return names
}

// typeFields are the fields of the checkboxes.
func typeFields() []string {
	fields := typeNames()
	for n, name := range fields {
		fields[n] = typeField + name
	}
	return fields
}

// types returns the names whose checkboxes are checked, nil for none: that means all types.
func (f *form) types() (names []string) {
	for _, name := range typeNames() {
		if f.values[typeField+name] != "" {
			names = append(names, name)
		}
	}
	return names
}

// typesView shows the checkboxes of event types.
type typesView struct {
	Boxes []typeBox
	// At is the help of the group.
	At fieldHelp
}

// typeBox is the checkbox of a type, or of all types of a subject.
type typeBox struct {
	// Name is the field's and the element's.
	Name, Type string
	// All is the subject of a pattern, empty for a type.
	All    string
	Ticked bool
}

// newTypesView shows the form's values if it was sent, otherwise what is chosen. "*" is shown as nothing chosen, which means the same.
func newTypesView(f *form, chosen []string) typesView {
	if _, sent := f.values["url"]; sent {
		chosen = f.types()
	}
	if slices.Contains(chosen, "*") {
		chosen = nil
	}
	v := typesView{At: f.At("types", "types-hint")}
	for _, name := range typeNames() {
		subject, all := strings.CutSuffix(name, ".*")
		box := typeBox{Name: typeField + name, Type: name, Ticked: slices.Contains(chosen, name)}
		if all {
			box.All = subject
		}
		v.Boxes = append(v.Boxes, box)
	}
	return v
}
