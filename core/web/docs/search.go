package docs

import "strings"

// entry is a place of the docs in the index.
type entry struct {
	Title, Kind, Href string
	// Text is searched too, and not shown.
	Text string
}

// Entries are all places of the docs: the guides and the operations first, then what they refer to.
func (s *site) Entries() ([]entry, error) {
	var all []entry
	for _, p := range s.pages() {
		if p.Path == searchPath {
			continue
		}
		all = append(all, entry{Title: p.Title, Kind: "page", Href: p.Path, Text: p.Words})
		if p.Tag == nil {
			for _, h := range p.Headings {
				all = append(all, entry{Title: h.Title, Kind: p.Name, Href: p.Path + "#" + h.ID, Text: h.Words})
			}
			continue
		}
		for _, e := range s.Endpoints(p.Tag.Name) {
			all = append(all, entry{Title: e.Method + " " + e.Path, Kind: e.Summary, Href: p.Path + "#" + e.OperationID, Text: e.OperationID})
		}
	}
	codes, err := s.ErrorCodes()
	for _, c := range codes {
		all = append(all, entry{Title: c.Code, Kind: strings.Join(append([]string{"error"}, c.Statuses...), " "), Href: guidePath("errors") + "#" + c.Code, Text: strings.Join(c.Messages, " ")})
	}
	for _, o := range s.Components.Schemas {
		all = append(all, entry{Title: o.Name, Kind: "object", Href: objectsPath + "#schema-" + o.Name, Text: memberNames(o.Value)})
	}
	for _, h := range s.Components.Headers {
		all = append(all, entry{Title: h.Name, Kind: "header", Href: responsesPath + "#header-" + h.Name})
	}
	return all, err
}

func memberNames(s schema) string {
	names := make([]string, len(s.Properties))
	for n, member := range s.Properties {
		names[n] = member.Name
	}
	return strings.Join(names, " ")
}
