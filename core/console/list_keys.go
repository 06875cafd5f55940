package console

import (
	"context"
	"net/http"
	"time"

	"intents.internal/core/account"
)

// keyView is a key with its derived state.
type keyView struct {
	*account.Key
	State string
	Now   time.Time
	Limit limitView
}

// limitView is the state of a key's bucket.
type limitView struct {
	Known     bool
	Remaining int
	Requests  int
	// FullIn is the time until the bucket is full, empty if it is full.
	FullIn string
	// Level is the bucket's fill in percent.
	Level int
}

// The states a key can be in, as people read them.
const (
	stateEnabled  = "Enabled"
	stateDisabled = "Disabled"
	stateExpired  = "Expired"
	stateRotated  = "Rotated out"
)

func newKeyView(k *account.Key, now time.Time) keyView {
	v := keyView{Key: k, State: stateEnabled, Now: now, Limit: limitView{Requests: k.Limit.Requests}}
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

// listKeys answers GET /console.
func (c *console) listKeys(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readQuery(r)
	if err != nil {
		return err
	}
	return c.renderKeys(w, r, user, f)
}

func (c *console) renderKeys(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	keys, err := c.Store.Keys(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	now := c.Store.Now()
	views := make([]keyView, len(keys))
	for i, k := range keys {
		views[i] = newKeyView(k, now)
	}
	c.fillLimits(r.Context(), views)
	return c.render(w, r, user, "keys", view{Title: "API keys", Section: "keys", Form: f, Body: map[string]any{
		"Keys": views, "Most": account.MaxKeys, "FormToken": newFormToken(), "Expiries": expiries,
	}})
}

// fillLimits sets the state of the keys' buckets.
func (c *console) fillLimits(ctx context.Context, views []keyView) {
	keys := make([]*account.Key, len(views))
	for i, v := range views {
		keys[i] = v.Key
	}
	for i, limit := range c.Access.RateLimits(ctx, keys...) {
		if !limit.Known {
			continue
		}
		l := &views[i].Limit
		l.Known, l.Remaining, l.Level = true, limit.Remaining, 100*limit.Remaining/max(1, l.Requests)
		if limit.Remaining < l.Requests {
			l.FullIn = wait(limit.ResetAfter)
		}
	}
}
