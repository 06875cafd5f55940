package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/web/webtest"
)

func TestGetIndex(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.Pages = true })
	const links = `{"docs":"http://intents.example/docs","quickstart":"http://intents.example/docs/quickstart","llms":"http://intents.example/llms.txt",
		"agents":"http://intents.example/docs/agents.md","openapi":"http://intents.example/openapi.json","health":"http://intents.example/health",
		"console":"http://intents.example/console"}`
	webtest.Same(t, "for a program", webtest.Want(t, 200, links), s.Example(t, "links", "GET", "/", "", "Accept", "*/*"))
	browser := s.Send(t, "GET", "/", "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	got := []any{browser.StatusCode, browser.Header.Get("Location"), browser.Header.Get("Vary"), browser.Header.Get("Cache-Control"), webtest.ReadAll(t, browser)}
	if diff := cmp.Diff([]any{303, "/docs", "Accept", "no-store", ""}, got); diff != "" {
		t.Errorf("for a browser (-want +got):\n%s", diff)
	}
	webtest.Same(t, "POST", webtest.Refused(t, 405, "METHOD_NOT_ALLOWED", "The path takes another method; see Allow.", "Allow", "GET, HEAD"), s.Call(t, "POST", "/", ""))
}
