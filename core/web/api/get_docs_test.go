package api_test

import (
	"strings"
	"testing"

	"intents.internal/core/web/webtest"
)

// A document that has not changed is not sent again.
func TestGetDocs_NotModified(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/docs", "/docs/errors", "/openapi.json"} {
		first := s.Send(t, "GET", path, "")
		webtest.ReadAll(t, first)
		again := s.Send(t, "GET", path, "", "If-None-Match", first.Header.Get("ETag"))
		if body := webtest.ReadAll(t, again); again.StatusCode != 304 || body != "" {
			t.Errorf("%s: %d %.40q", path, again.StatusCode, body)
		}
	}
}

func TestGetDocs(t *testing.T) {
	t.Parallel()
	s := start(t)
	for path, want := range map[string]struct{ mediaType, begins, policy string }{
		"/docs": {
			"text/html; charset=utf-8", "<!DOCTYPE html>",
			"default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
		},
		"/docs/reference/transfers": {
			"text/html; charset=utf-8", "<!DOCTYPE html>",
			"default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
		},
		"/docs/style.css":  {"text/css; charset=utf-8", ":root {", ""},
		"/docs/client.tgz": {"application/gzip", "\x1f\x8b", ""},
		"/docs/docs.js":    {"text/javascript; charset=utf-8", "// What", ""},
		"/docs/agents.md":  {"text/markdown; charset=utf-8", "# Moving tokens", ""},
		"/llms.txt":        {"text/plain; charset=utf-8", "# Transfer Intent Service\n\n> ", ""},
	} {
		response := s.Send(t, "GET", path, "")
		body, header := webtest.ReadAll(t, response), response.Header
		if response.StatusCode != 200 || header.Get("Content-Type") != want.mediaType || !strings.HasPrefix(body, want.begins) {
			t.Errorf("%s: %d %s %.40q", path, response.StatusCode, header.Get("Content-Type"), body)
		}
		if header.Get("Content-Security-Policy") != want.policy || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, header)
		}
	}
}

func TestGetDocs_UnknownPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/docs/", "/docs/none", "/docs/errors/", "/docs/reference", "/docs/pages/errors.md"} {
		response := s.Send(t, "GET", path, "")
		if body := webtest.ReadAll(t, response); response.StatusCode != 404 || !strings.Contains(body, `"NOT_FOUND"`) {
			t.Errorf("%s: %d %.80s", path, response.StatusCode, body)
		}
	}
}
