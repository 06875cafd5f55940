package feed_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/pkg/network"
)

func TestParseID(t *testing.T) {
	t.Parallel()
	id := feed.ID(uuid.MustParse("4bc1132c-c58f-5764-b82f-b9e1ad866439"))
	const text = "evt_4bc1132c-c58f-5764-b82f-b9e1ad866439"
	if id.String() != text {
		t.Errorf("the id is %s", id)
	}
	if got, ok := feed.ParseID(text); !ok || got != id {
		t.Errorf("parsed %s, %t", got, ok)
	}
	for _, other := range []string{
		"", "evt_", text[4:], "EVT_" + text[4:], "evt_" + strings.ToUpper(text[4:]), text + "0", "evt_{" + text[4:] + "}", "evt_" + strings.ReplaceAll(text[4:], "-", ""),
	} {
		if got, ok := feed.ParseID(other); ok {
			t.Errorf("%q is the id %s", other, got)
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	everything := len(feed.Types())
	for text, want := range map[string]int{
		"*": everything, "transfer.*": everything - 1, "webhook.*": 1, "transfer.*,webhook.*": everything, "transfer.created": 1,
		"transfer.created,transfer.created": 1, "transfer.created,webhook.disabled": 2, "transfer.created,*": everything,
		"": 0, "transfer": 0, "transfer.": 0, "webhook.test": 0, "transfer.created ": 0, "Transfer.created": 0, "transfer.created,": 0, "**": 0, ".*": 0,
	} {
		f, err := feed.ParseFilter(text)
		if (err == nil) != (want > 0) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		selected := want
		if want == everything {
			selected = 0 // nil stands for all
		}
		if got := f.Types(); len(got) != selected {
			t.Errorf("%q selects %v, want %d types", text, got, want)
		}
	}
	if _, err := feed.NewFilter(nil); err == nil {
		t.Error("no pattern is a filter")
	}
}

func FuzzParseCursor(f *testing.F) {
	owner := feed.Owner{AccountID: uuid.MustParse("01a1fc6f-cea0-7b16-87fe-c7933bb8a48e"), Environment: network.Test}
	for _, position := range []int64{0, 1, 1795236700112233, 1<<63 - 1} {
		f.Add(feed.FormatCursor(owner, position))
	}
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("\x01\xff\xff\xff\xff\xff\xff\xff\xff12345678")))
	f.Fuzz(func(t *testing.T, text string) {
		position, err := feed.ParseCursor(owner, text)
		if err != nil {
			return
		}
		if diff := cmp.Diff(feed.FormatCursor(owner, position), text); diff != "" || position < 0 {
			t.Errorf("%d is spelled otherwise (-want +got):\n%s", position, diff)
		}
		other := owner
		other.Environment = network.Live
		if _, err := feed.ParseCursor(other, text); err == nil {
			t.Errorf("%q is the other environment's cursor too", text)
		}
	})
}
