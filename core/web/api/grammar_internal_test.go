package api

import (
	"encoding/json"
	"regexp"
	"testing"

	"intents.internal/core/feed"
)

// The patterns of events' types have what the decoder of filters takes, and nothing else.
func TestDocument_EventFilters(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Parameters map[string]struct{ Schema struct{ Pattern string } }
			Schemas    map[string]struct {
				Properties map[string]struct {
					Pattern string
					Items   struct{ Pattern string }
				}
			}
		}
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	list := document.Components.Parameters["EventTypes"].Schema.Pattern
	one := document.Components.Schemas["CreateWebhookInput"].Properties["types"].Items.Pattern
	if list == "" || one == "" {
		t.Fatalf("there is no pattern: %q, %q", list, one)
	}
	given := []string{"", "*", "transfer.*", "webhook.*", "transfer", "transfer.", ".*", "webhook.test", "transfer.none", "TRANSFER.*", "transfer.created ", "**"}
	for _, kind := range feed.Types() {
		given = append(given, string(kind))
	}
	for _, text := range given {
		_, err := feed.ParseFilter(text)
		if regexp.MustCompile(one).MatchString(text) != (err == nil) {
			t.Errorf("%q matches %s is not what the decoder says: %v", text, one, err)
		}
		for _, more := range []string{text, "*," + text, text + ",transfer.filled"} {
			if _, err := feed.ParseFilter(more); regexp.MustCompile(list).MatchString(more) != (err == nil) {
				t.Errorf("%q matches %s is not what the decoder says: %v", more, list, err)
			}
		}
	}
}
