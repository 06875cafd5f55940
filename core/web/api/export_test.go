package api

// SessionPatterns are the methods and paths of all routes below /auth.
func SessionPatterns() (patterns []string) {
	for path, route := range (&Server{}).sessionRoutes() {
		patterns = append(patterns, route.method+" "+path)
	}
	return patterns
}
