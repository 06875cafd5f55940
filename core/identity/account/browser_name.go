package account

import (
	"regexp"

	"github.com/mileusna/useragent"
)

// productName bounds a name that is shown: a client chooses its User-Agent header, and the parser returns a header that it cannot
// split as a whole.
var productName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ._-]{0,31}$`)

// BrowserName names the browser or program of a User-Agent header, and its operating system where that is known.
func BrowserName(userAgent string) string {
	parsed := useragent.Parse(userAgent)
	name := parsed.Name
	if !productName.MatchString(name) {
		name = "Unknown browser"
	}
	if parsed.OS == "" {
		return name
	}
	return name + " on " + parsed.OS
}
