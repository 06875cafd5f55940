package apikey_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/apikey"
)

func TestScopes(t *testing.T) {
	t.Parallel()
	for scopes := range apikey.AllScopes + 1 {
		names := scopes.Names()
		got, err := apikey.ParseScopes(names)
		if got != scopes || err != nil {
			t.Errorf("ParseScopes(%q) = %d, %v; want %d", names, got, err, scopes)
		}
		for needed := range apikey.AllScopes + 1 {
			if want := needed&^scopes == 0; scopes.Has(needed) != want {
				t.Errorf("%q has %q: %v", names, needed.Names(), !want)
			}
		}
	}
	if diff := cmp.Diff([]string{"intents:read", "intents:write", "webhooks"}, apikey.AllScopes.Names()); diff != "" {
		t.Errorf("the names (-want +got):\n%s", diff)
	}
	for _, names := range [][]string{{""}, {"intents"}, {"Webhooks"}, {"webhooks "}, {"webhooks", "*"}, {"intents:read,webhooks"}} {
		if got, err := apikey.ParseScopes(names); err == nil || got != 0 {
			t.Errorf("ParseScopes(%q) = %q", names, got.Names())
		}
	}
	if got, err := apikey.ParseScopes([]string{"webhooks", "intents:read", "webhooks"}); err != nil || got != apikey.IntentsRead|apikey.Webhooks {
		t.Errorf("repeated and in another order: %q, %v", got.Names(), err)
	}
}
