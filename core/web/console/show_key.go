package console

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/web/console/chart"
)

// graces are the form's choices for how long a rotated key stays valid; the API accepts any number of seconds up to a day.
var graces = []choice{
	{"0", "Not at all: refuse it at once"}, {"300", "5 minutes more"}, {"3600", "1 hour more"}, {"86400", "24 hours more"},
}

// showKey answers GET /console/keys/{id}.
func (c *console) showKey(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	key, err := c.keyOf(r, user)
	if err != nil {
		return err
	}
	now := c.Now()
	hour, err := c.Identities.KeyUsage(r.Context(), user.principal.Account.ID, key.ID, chart.HourSince(now), time.Minute)
	if err != nil {
		return err
	}
	day, err := c.Identities.KeyUsage(r.Context(), user.principal.Account.ID, key.ID, chart.DaySince(now), chart.DayColumn)
	if err != nil {
		return err
	}
	views := []keyView{newKeyView(key, now)}
	c.fillLimits(r.Context(), views)
	accountLimit := newLimitView(user.principal.Account.Limit)
	accountLimit.fill(c.Identity.Keys.AccountRateLimit(r.Context(), user.principal.Account, key.Environment))
	perMinute := int(time.Duration(key.Limit.Requests) * time.Minute / key.Limit.Period)
	return c.render(w, r, user, "key", view{Title: key.Name, Section: "keys", Of: key.Environment, Form: f, Body: map[string]any{
		"Key": views[0], "AccountLimit": accountLimit, "Name": f.or("name", key.Name), "Expiries": expiries, "Graces": graces,
		"Restrictions": newRestrictionsView(f, key.Scopes, key.Networks),
		"Charts":       []chart.Chart{chart.Hour(hour, perMinute, now), chart.Day(day, perMinute, now)},
	}})
}

// keyOf returns the key in the path. It returns account.ErrNotFound if the account has no such key.
func (c *console) keyOf(r *http.Request, user currentUser) (*account.Key, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	return c.Identities.Key(r.Context(), user.principal.Account.ID, id)
}

func idOf(r *http.Request) (uuid.UUID, error) {
	text := r.PathValue("id")
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 { // Parse also accepts other spellings
		return uuid.Nil, account.ErrNotFound
	}
	return id, nil
}
