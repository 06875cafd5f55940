package console

// Patterns are those of all pages and forms, with a session and without.
func Patterns() (patterns []string) {
	c := &console{}
	for path := range c.formRoutes() {
		patterns = append(patterns, "POST "+path)
	}
	for pattern := range c.pageRoutes() {
		patterns = append(patterns, pattern)
	}
	for pattern := range c.openPages() {
		patterns = append(patterns, pattern)
	}
	return patterns
}
