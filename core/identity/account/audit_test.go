package account_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

func TestAuditEntry(t *testing.T) {
	t.Parallel()
	owner, key := uuid.New(), newKey(t, account.KeyRequest{Name: "a"})
	claimed := account.Actor{IPAddress: "192.0.2.1\n" + strings.Repeat("1", 300), UserAgent: "a\x00b\xff" + strings.Repeat("ü", 300)}
	got, err := account.NewAuditEntry(owner, claimed, account.KeyUpdated, noon)
	if err != nil {
		t.Fatal(err)
	}
	want := account.AuditEntry{
		ID: got.ID, AccountID: owner, OccurredAt: noon, Action: account.KeyUpdated,
		Actor: account.Actor{IPAddress: "192.0.2.1" + strings.Repeat("1", 247), UserAgent: "ab\ufffd" + strings.Repeat("ü", 253)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entry differs (-want +got):\n%s", diff)
	}
	ofKey := got.OfKey(key, "disabled")
	want.KeyID, want.KeyName, want.Detail = &key.ID, "a", "disabled"
	if diff := cmp.Diff(want, ofKey); diff != "" {
		t.Errorf("entry of a key differs (-want +got):\n%s", diff)
	}
	if got.KeyID != nil {
		t.Error("OfKey changed the entry that it was called on")
	}
	if next, _ := account.NewAuditEntry(owner, account.Actor{}, account.SignedIn, noon); next.ID.String() <= got.ID.String() {
		t.Errorf("%s after %s: ids are not in the order of time", next.ID, got.ID)
	}
}
