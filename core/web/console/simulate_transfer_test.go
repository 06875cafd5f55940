package console_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestSimulateTransfer(t *testing.T) {
	t.Parallel()
	ann := newPayer(t)
	intent := ann.record(t, ann.owner, ann.keyID, sepoliaID.String(), "inv-1")
	path := "/console/transfers/" + intent.ID.String()
	if list := ann.get("/console/transfers").is(http.StatusOK, "inv-1"); strings.Contains(list.text(), "simulated") {
		t.Error("the list says that an intent is simulated that is not")
	}
	page := ann.get(path).is(http.StatusOK, "created", "The intent can never be sent then.")
	if strings.Contains(page.text(), "simulated") {
		t.Error("an intent that nobody has simulated says so")
	}
	ann.post(path+"/simulate", "status", "cancelled").is(http.StatusBadRequest).tied("status", "Choose one of the statuses.")
	ann.post(path+"/simulate", "status", "filled").is(http.StatusConflict)
	ann.signedUp(t, "bob@example.com").post(path+"/simulate", "status", "failed").is(http.StatusNotFound, "No such transfer")
	ann.get(path + "/simulate").leadsTo(path)

	for range 2 {
		ann.post(path+"/simulate", "status", "failed").leadsTo(path + "?done=simulated")
	}
	page = ann.get(path+"?done=simulated").is(http.StatusOK, "The status is simulated.", "failed", "simulated", "so the intent is never sent")
	if page.offers("data-send") || page.offers("data-report") {
		t.Error("an intent that was simulated can be sent")
	}
	ann.get("/console/transfers").is(http.StatusOK, "failed simulated")
	ann.post(path+"/transaction", "hash", "0x"+strings.Repeat("ab", 32)).is(http.StatusConflict, "never sent")

	sent := ann.record(t, ann.owner, ann.keyID, sepoliaID.String(), "inv-2")
	path = "/console/transfers/" + sent.ID.String()
	ann.post(path+"/transaction", "hash", "0x"+strings.Repeat("cd", 32)).leadsTo(path + "?done=reported")
	if page := ann.get(path).is(http.StatusOK, "submitted"); strings.Contains(page.text(), "Simulate") {
		t.Error("an intent that was sent can be simulated")
	}
	ann.post(path+"/simulate", "status", "confirmed").is(http.StatusConflict, "its chain decides")
}
