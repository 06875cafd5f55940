package console

import (
	"context"
	"net/http"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
)

// keyView is a key with its derived state.
type keyView struct {
	*account.Key
	State string
	Now   time.Time
	Limit limitView
}

// limitView is the state of the bucket of a key or an account.
type limitView struct {
	Known     bool
	Remaining int
	Requests  int
	// Per is the period of the limit, such as "a minute".
	Per string
	// FullIn is the time until the bucket is full, empty if it is full.
	FullIn string
	// Level is the bucket's fill in percent.
	Level int
}

// The display names of a key's states.
const (
	stateEnabled  = "Enabled"
	stateDisabled = "Disabled"
	stateExpired  = "Expired"
	stateRotated  = "Rotated out"
)

func newKeyView(k *account.Key, now time.Time) keyView {
	v := keyView{Key: k, State: stateEnabled, Now: now, Limit: newLimitView(k.Limit)}
	switch {
	case k.ExpiresAt != nil && !k.ExpiresAt.After(now):
		v.State = stateExpired
	case !k.Enabled:
		v.State = stateDisabled
	case k.RotatedAt != nil:
		v.State = stateRotated
	}
	return v
}

// listKeys answers GET /console/keys with the keys of the shown environment.
func (c *console) listKeys(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	keys, err := c.Identities.Keys(r.Context(), user.principal.Account.ID)
	if err != nil {
		return err
	}
	now, of := c.Now(), f.listed(user)
	var views []keyView
	for _, k := range keys {
		if k.Environment == of {
			views = append(views, newKeyView(k, now))
		}
	}
	c.fillLimits(r.Context(), views)
	origins, err := c.Identities.Origins(r.Context(), user.principal.Account.ID)
	if err != nil {
		return err
	}
	return c.render(w, r, user, "keys", view{Title: "API keys", Section: "keys", Of: of, Form: f, Body: map[string]any{
		"Keys": views, "Count": len(keys), "Environment": of, "Most": account.MaxKeys, "FormToken": newFormToken(), "Expiries": expiries,
		"Restrictions": newRestrictionsView(f, apikey.AllScopes, nil), "Origins": origins, "OriginLines": f.originLines(origins),
	}})
}

// fillLimits sets the state of the keys' buckets.
func (c *console) fillLimits(ctx context.Context, views []keyView) {
	keys := make([]*account.Key, len(views))
	for i, v := range views {
		keys[i] = v.Key
	}
	for i, limit := range c.Identity.Keys.RateLimits(ctx, keys...) {
		views[i].Limit.fill(limit)
	}
}

func newLimitView(l account.Limit) limitView {
	v := limitView{Requests: l.Requests, Per: "a minute"}
	if l.Period != time.Minute {
		v.Per = "in " + l.Period.String()
	}
	return v
}

// fill sets the state of the bucket, if it is known.
func (v *limitView) fill(limit identity.RateLimit) {
	if !limit.Known {
		return
	}
	v.Known, v.Remaining, v.Level = true, limit.Remaining, 100*limit.Remaining/max(1, v.Requests)
	if limit.Remaining < v.Requests {
		v.FullIn = wait(limit.ResetAfter)
	}
}
