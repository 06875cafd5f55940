package settings

import (
	"net/url"
	"reflect"
)

// What the tag reload says of a field.
const (
	// reloads fields change while the service runs.
	reloads = "yes"
	// reloadsCredentials fields are URLs of which the user and password do.
	reloadsCredentials = "credentials"
)

// merge takes over from fresh what may change while the service runs. It tells the variables that have changed, and those
// that differ and keep their value until a restart.
func merge[C any](running, fresh C) (next C, changed, pending []string) {
	next = running
	to, from := reflect.ValueOf(&next).Elem(), reflect.ValueOf(&fresh).Elem()
	for i := range to.NumField() {
		tag := to.Type().Field(i).Tag
		if reflect.DeepEqual(to.Field(i).Interface(), from.Field(i).Interface()) {
			continue
		}
		mark := tag.Get("reload")
		if mark == reloads || mark == reloadsCredentials && sameBesidesCredentials(to.Field(i).String(), from.Field(i).String()) {
			to.Field(i).Set(from.Field(i))
			changed = append(changed, tag.Get("env"))
		} else {
			pending = append(pending, tag.Get("env"))
		}
	}
	return next, changed, pending
}

// credentials are query parameters that name a user or tell a password: Postgres's may stand there as well, and where Redis's URL
// names Sentinels the user and password before the host are theirs, and the master's stand there.
var credentials = []string{"user", "username", "password"}

// sameBesidesCredentials reports whether two URLs lead to one place.
func sameBesidesCredentials(a, b string) bool {
	place := func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			return raw
		}
		query, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			return raw
		}
		for _, name := range credentials {
			query.Del(name)
		}
		u.User, u.RawQuery = nil, query.Encode()
		return u.String()
	}
	return place(a) == place(b)
}
