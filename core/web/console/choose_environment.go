package console

import (
	"net/http"
	"net/url"
	"strings"

	"intents.internal/pkg/network"
)

// environmentPath is where the switch between test and live posts.
const environmentPath = "/console/environment"

var environments = []network.Environment{network.Test, network.Live}

// chooseEnvironment answers POST /console/environment: this browser's lists and overview show the environment from now on.
func (c *console) chooseEnvironment(w http.ResponseWriter, _ *http.Request, _ currentUser, f *form) (string, error) {
	chosen, err := network.Parse(f.values["environment"])
	if err != nil {
		return "", errUnknownField
	}
	c.Cookie.ShowEnvironment(w, chosen)
	return safeNext(f.values["next"]), nil
}

// shownEnvironment is the environment that lists and the overview show: that which the browser has chosen or, before it chooses, live if the account
// has a live key.
func (c *console) shownEnvironment(r *http.Request, user currentUser) (network.Environment, error) {
	if chosen, ok := c.Cookie.Environment(r); ok {
		return chosen, nil
	}
	keys, err := c.Identities.Keys(r.Context(), user.principal.Account.ID)
	if err != nil {
		return "", err
	}
	for _, key := range keys {
		if key.Environment == network.Live {
			return network.Live, nil
		}
	}
	return network.Test, nil
}

// listed is the environment of the list below a form, so that what was made twice is in it: the form's own once it is sent.
func (f *form) listed(user currentUser) network.Environment {
	if chosen, err := network.Parse(f.values["environment"]); err == nil {
		return chosen
	}
	return user.environment
}

// environmentSwitch is the switch in the header.
type environmentSwitch struct {
	Choices []environmentChoice
	// Next is the page that the switch leads back to.
	Next string
}

type environmentChoice struct {
	Environment network.Environment
	Shown       bool
}

func newEnvironmentSwitch(r *http.Request, shown network.Environment) *environmentSwitch {
	s := &environmentSwitch{Next: afterSwitch(r)}
	for _, environment := range environments {
		s.Choices = append(s.Choices, environmentChoice{environment, environment == shown})
	}
	return s
}

// ofOneEnvironment are the fields of queries that say nothing in the other environment, or of what was done before.
var ofOneEnvironment = []string{"environment", "after", "done", "account", "chain", "sourceChain", "destinationChain", "sourceToken", "destinationToken"}

// afterSwitch is the request's page, or the list that it belongs to where the page shows one object, which has its environment.
func afterSwitch(r *http.Request) string {
	if _, pattern, _ := strings.Cut(r.Pattern, " "); r.Method != http.MethodGet || strings.Contains(pattern, "{") {
		list, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, home+"/"), "/")
		return home + "/" + list
	}
	query := r.URL.Query()
	for _, name := range ofOneEnvironment {
		query.Del(name)
	}
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).RequestURI()
}
