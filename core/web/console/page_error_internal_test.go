package console

import (
	"net/http"
	"testing"

	"intents.internal/core/store/postgres"
)

// A write that the database did not confirm is sent again only where that is safe.
func TestPageError_OutcomeUnknown(t *testing.T) {
	t.Parallel()
	for repeatable, want := range map[bool]string{
		true:  "The database did not confirm this, so it may have been done or not. Reload this page to send the same form again: whatever became of it, it is done once.",
		false: "The database did not confirm this, so it may have been done or not. Look at the list that it would be in before you send it again.",
	} {
		got := toPageError(&postgres.OutcomeUnknownError{Err: http.ErrHandlerTimeout, Repeatable: repeatable})
		if got.status != http.StatusServiceUnavailable || got.Title != "Not confirmed" || got.Text != want || (got.retryAfter > 0) != repeatable {
			t.Errorf("repeatable %t: %+v", repeatable, got)
		}
	}
}
