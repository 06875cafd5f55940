package account_test

import (
	"strings"
	"testing"

	"intents.internal/core/identity/account"
)

func TestBrowserName(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36":                                   "Chrome on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0":           "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1": "Safari on iOS",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:132.0) Gecko/20100101 Firefox/132.0":                                                    "Firefox on macOS",
		"curl/8.5.0":                          "curl",
		"<b>1</b>/1 (Linux)":                  "Unknown browser on Linux",
		"one two " + strings.Repeat("x", 100): "Unknown browser",
	} {
		if got := account.BrowserName(header); got != want {
			t.Errorf("%s is named %s, want %s", header, got, want)
		}
	}
}
