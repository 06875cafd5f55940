package identity

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

const (
	// maxFlows is how many sign-ins a browser can have in progress, and maxFlowBytes how long the cookie with them can be. Browsers keep cookies
	// of up to 4096 bytes with their attributes (RFC 6265bis section 5.7), and two flows with the longest path fit.
	maxFlows, maxFlowBytes = 5, 3500
	// flowSeparator separates flows, and callbackSeparator a flow from its callback.
	flowSeparator, callbackSeparator = "|", "~"
)

// FlowCookie is the cookie of the sign-ins in progress, one for each tab: the flow of each, and the path on this site to redirect to
// afterwards. SameSite=Lax includes it in the redirect from the provider.
type FlowCookie struct{ cookie Cookie }

// NewFlowCookie takes the URL at which browsers reach the service.
func NewFlowCookie(publicURL string) FlowCookie {
	c := NewCookie(publicURL)
	c.name = "oidc"
	return FlowCookie{cookie: c}
}

// Add sets the cookie for the lifetime of a flow, which it adds to those of the request's cookie. The oldest ones make room for it.
func (c FlowCookie) Add(w http.ResponseWriter, r *http.Request, flow, callback string) {
	added := flow + callbackSeparator + base64.RawURLEncoding.EncodeToString([]byte(callback))
	flows := append(c.flows(r), added)
	for len(flows) > maxFlows || len(flows) > 1 && len(strings.Join(flows, flowSeparator)) > maxFlowBytes {
		flows = flows[1:]
	}
	c.cookie.set(w, strings.Join(flows, flowSeparator), flowLifetime)
}

// Flow is the flow of a state in the request's cookie, empty without one. The browser may have changed it.
func (c FlowCookie) Flow(r *http.Request, state string) (flow, callback string) {
	flows := c.flows(r)
	i := slices.IndexFunc(flows, hasState(state))
	if i < 0 {
		return "", ""
	}
	flow, encoded, _ := strings.Cut(flows[i], callbackSeparator)
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return flow, ""
	}
	return flow, string(decoded)
}

// Remove deletes the flow of a state, if there is one, and the cookie with the last one.
func (c FlowCookie) Remove(w http.ResponseWriter, r *http.Request, state string) {
	if flows := slices.DeleteFunc(c.flows(r), hasState(state)); len(flows) > 0 {
		c.cookie.set(w, strings.Join(flows, flowSeparator), flowLifetime)
	} else {
		c.cookie.Clear(w)
	}
}

// flows are those of the request's cookie with their callbacks, oldest first.
func (c FlowCookie) flows(r *http.Request) []string {
	value := c.cookie.Token(r)
	if value == "" {
		return nil
	}
	return strings.Split(value, flowSeparator)
}

// hasState returns whether a flow of the cookie is the one that was started with a state.
func hasState(state string) func(string) bool {
	return func(flow string) bool {
		flow, _, _ = strings.Cut(flow, callbackSeparator)
		f, ok := parseFlow(flow)
		return ok && f.state == state
	}
}
