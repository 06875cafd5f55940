package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Sessions and the audit log name a browser and do not show its header.
func TestBrowserName(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.signedUp(t, "ann@example.com")
	const header = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
	ann := s.sessionFrom(t, s.ann(t), "203.0.113.7", header, time.Now())
	for path, want := range map[string]string{"/console/account": "Chrome on Linux 203.0.113.7", "/console/audit": "203.0.113.7 Chrome on Linux"} {
		if page := ann.get(path).is(http.StatusOK, want); strings.Contains(page.text(), header) {
			t.Errorf("%s shows the header", path)
		}
	}
}
