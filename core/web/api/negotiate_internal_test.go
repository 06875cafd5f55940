package api

import (
	"net/http"
	"testing"
)

func TestNegotiate(t *testing.T) {
	t.Parallel()
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json": "application/json", "image/png": "application/json",
		browser: "text/html", "text/html": "text/html", "TEXT/HTML; charset=utf-8": "text/html", "text/*": "text/html",
		"application/json;q=0.5, text/*": "text/html", "text/html;q=0, */*": "application/json", "text/html, application/json": "application/json",
		"*/*;q=0.1, text/html;q=0.2, text/*;q=0.9": "text/html", ";;, text/html": "text/html", "text/html;q=x": "text/html",
	} {
		r := &http.Request{Header: http.Header{}}
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		if got := negotiate(r, "application/json", "text/html"); got != want {
			t.Errorf("Accept: %s is %s, want %s", accept, got, want)
		}
	}
	r := &http.Request{Header: http.Header{"Accept": {"application/json;q=0.5", "text/html"}}}
	if got := negotiate(r, "application/json", "text/html"); got != "text/html" {
		t.Errorf("two lines are %s", got)
	}
}
