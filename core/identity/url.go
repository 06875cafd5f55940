package identity

import (
	"net/url"
	"path"
	"strings"

	"intents.internal/core/identity/account"
)

// SitePath returns the path of a URL on this site, empty for none. It returns an *account.InvalidError of the field for another
// site.
func (s *base) SitePath(field, given string) (path string, err error) {
	path = strings.TrimPrefix(given, s.PublicURL)
	if _, err := url.Parse(path); given != "" && (err != nil || !LocalPath(path)) {
		return "", &account.InvalidError{Field: field, Message: "must be a path on this site, such as /console"}
	}
	return path, nil
}

// homePath is the first page of the console, below which are all pages of this site that a person may be led to.
const homePath = "/console"

// Callback returns the page of the console to which a mailed link finally leads, empty for the default. It leads to no other path,
// such as an endpoint of the API, because the person who asks for a mail may not be its recipient. It returns an *account.InvalidError of the
// field for another site.
func (s *base) Callback(field, given string) (page string, err error) {
	local, err := s.SitePath(field, given)
	if err != nil || local != homePath && !strings.HasPrefix(local, homePath+"/") || local != path.Clean(local) || strings.ContainsAny(local, "?#%") {
		return "", err
	}
	return local, nil
}

// LocalPath reports whether a redirect to path stays on this site. Browsers read `\` as `/` and skip tabs and line feeds, which would
// turn a path into a host.
func LocalPath(path string) bool {
	return len(path) <= 1024 && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") &&
		!strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f })
}

// ResetURL is the link for a new password.
func ResetURL(publicURL, token string) string { return WithQuery(publicURL+ResetPath, "token", token) }

// WithQuery adds a parameter to the query of a URL, unless its value is empty.
func WithQuery(to, name, value string) string {
	u, err := url.Parse(to)
	if err != nil || value == "" {
		return to
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}
