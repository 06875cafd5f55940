package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// What is found leads to its page, several to their list, and what is not found says why. Nobody finds what is another account's.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	owner := feed.Owner{AccountID: s.ann(t).ID, Environment: network.Test}
	intent := pgtest.InsertTransfer(t, s.store, s.known, owner.AccountID, pgtest.TransferBody)
	hash := "0x" + strings.Repeat("ab", 32)
	pgtest.Exec(t, s.store, `UPDATE transfers SET reference = 'Order 7 & more', hash = $1, status = 'submitted'`, hash)
	orderID := "0x" + pgtest.LookUp[string](t, s.store, `SELECT encode(order_id, 'hex') FROM transfers`)
	page := "/console/transfers/" + intent.ID.String()
	find := func(b *browser, text string) *answer { return b.get("/console/search?q=" + url.QueryEscape(text)) }
	for _, text := range []string{
		intent.ID.String(), " " + strings.ToUpper(intent.ID.String()), orderID, "0x" + strings.ToUpper(orderID[2:]), hash, strings.ToUpper(hash), "Order 7 & more",
	} {
		find(ann, text).leadsTo(page)
		find(ben, text).is(http.StatusOK, "Nothing was found in this account.")
	}
	ann.get("/console/search").is(http.StatusOK, "Find a transfer", "in the box above")
	find(ann, "<b>7</b>").is(http.StatusOK, "no transfer of this account has it as its reference")
	find(ann, "0x"+strings.Repeat("ab", 20)).is(http.StatusOK, "is sent or received by this address")
	for _, text := range []string{alice, strings.ToLower(alice), sepoliaID.String() + ":" + alice} {
		find(ann, text).leadsTo(page)
		find(ben, text).is(http.StatusOK, "Nothing was found in this account.")
	}
	pgtest.Exec(t, s.store, `UPDATE transfers SET labels = $1`, wire.NewLabels(map[string]string{"customer": "42=a", "run": "June"}))
	for _, text := range []string{"customer=42=a", " run=June "} {
		find(ann, text).leadsTo(page)
		find(ben, text).is(http.StatusOK, "No transfer of this account has this label or this reference.")
	}
	for _, text := range []string{"run=june", "customer=42", "run=", "a b=1"} {
		find(ann, text).is(http.StatusOK, "Nothing was found in this account.")
	}
	find(ann, "eip155:1:"+alice).is(http.StatusOK, "Nothing was found in this account.")
	find(ann, hash+"a").is(http.StatusOK, "has 65 characters after 0x")
	find(ann, uuid.NewString()).is(http.StatusOK, "no batch of this account has this id")
	find(ann, "a\x00b").is(http.StatusBadRequest, "holds characters that cannot be stored")
	pgtest.InsertTransfer(t, s.store, s.known, owner.AccountID, pgtest.TransferBody)
	pgtest.Exec(t, s.store, `UPDATE transfers SET reference = 'Order 7 & more'`)
	list := "/console/transfers?environment=all&reference=Order+7+%26+more"
	find(ann, "Order 7 & more").leadsTo(list)
	ann.get(list).is(http.StatusOK, "created", "submitted")
	list = "/console/transfers?account=" + strings.ToLower(alice) + "&environment=all"
	find(ann, alice).leadsTo(list)
	ann.get(list).is(http.StatusOK, "created", "submitted")
	pgtest.Exec(t, s.store, `UPDATE transfers SET labels = $1`, wire.NewLabels(map[string]string{"run": "July & more"}))
	list = "/console/transfers?environment=all&label=run%3DJuly+%26+more"
	find(ann, "run=July & more").leadsTo(list)
	ann.get(list).is(http.StatusOK, "created", "submitted")
	shown, err := url.Parse(ann.get(page).link("/console/transfers?environment=all&label="))
	if err != nil || shown.Query().Get("label") != "run=July & more" {
		t.Errorf("the label on the intent's page leads to %v, %v", shown, err)
	}
}
