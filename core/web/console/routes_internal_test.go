package console

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"intents.internal/core/identity"
)

// changes are the pages that lead to a change, or have what makes one.
var changes = regexp.MustCompile(`/(delete|refund|relay|revoke|new)$`)

// Every page and form says what it needs: what is about the person needs a session alone, looking is for every member, and what changes
// something of the account is not for viewers.
func TestRoutes_Needs(t *testing.T) {
	t.Parallel()
	c := &console{}
	routes := map[string]sessionRoute{}
	for path, route := range c.formRoutes() {
		routes["POST "+path] = route
	}
	maps.Copy(routes, c.pageRoutes())
	for pattern, route := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		want := identity.Develop
		switch {
		case strings.HasPrefix(path, "/console/account"), strings.HasPrefix(path, invitationPath), path == membersPath+"/leave",
			path == environmentPath:
			want = identity.Person
		case method == "POST" && strings.HasPrefix(path, membersPath):
			want = identity.Manage
		case method == "GET" && !changes.MatchString(path):
			want = identity.Read
		}
		if route.need != want {
			t.Errorf("%s needs %d, want %d", pattern, route.need, want)
		}
	}
}
