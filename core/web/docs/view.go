package docs

import "cmp"

// view is the document in the order and the words of the page.
type view struct {
	*document
	StylePath string
}

// endpoint is an operation with its place.
type endpoint struct {
	operation
	Method string
	// Path is the name of the event for what the service itself sends.
	Path string
	Sent bool
}

// Endpoints are the operations with a tag, in the document's order.
func (v view) Endpoints(tag string) []endpoint {
	endpoints := tagged(v.Paths, tag)
	for _, sent := range tagged(v.Webhooks, tag) {
		sent.Sent = true
		endpoints = append(endpoints, sent)
	}
	return endpoints
}

func tagged(paths ordered[pathItem], tag string) (endpoints []endpoint) {
	for _, path := range paths {
		for _, of := range []struct {
			method    string
			operation *operation
		}{{"GET", path.Value.Get}, {"POST", path.Value.Post}, {"PATCH", path.Value.Patch}, {"DELETE", path.Value.Delete}} {
			if of.operation == nil || len(of.operation.Tags) == 0 || of.operation.Tags[0] != tag {
				continue
			}
			one := endpoint{operation: *of.operation, Method: of.method, Path: path.Name}
			one.Parameters = append(one.Parameters, path.Value.Parameters...)
			endpoints = append(endpoints, one)
		}
	}
	return endpoints
}

// Parameter follows a reference.
func (v view) Parameter(p parameter) (parameter, error) {
	if p.Ref == "" {
		return p, nil
	}
	return v.Components.Parameters.find(p.Ref)
}

// Response follows a reference, whose own description replaces the shared one.
func (v view) Response(r response) (response, error) {
	if r.Ref == "" {
		return r, nil
	}
	found, err := v.Components.Responses.find(r.Ref)
	found.Ref, found.Description = r.Ref, cmp.Or(r.Description, found.Description)
	return found, err
}

// Who tells who may ask.
func (e endpoint) Who() string {
	switch {
	case e.Sent:
		return "Sent to your URL"
	case len(e.Security) == 0:
		return "Anyone"
	case len(e.Security[0]) == 0:
		return "Anyone; reads the browser session"
	case e.Security[0]["apiKey"] != nil:
		return "API key"
	default:
		return "Browser session"
	}
}
