package console_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/screening"
)

// startScreened is start with a list, which list replaces.
func startScreened(t *testing.T) (s *site, list func(lines ...string)) {
	t.Helper()
	store, path := pgtest.New(t), filepath.Join(t.TempDir(), "list.txt")
	nobody := "" // so many that the list is not halved
	for n := range 10 {
		nobody += fmt.Sprintf("0x%040x\n", n)
	}
	write := func(lines ...string) {
		pgtest.Must(t, os.WriteFile(path, []byte(nobody+strings.Join(lines, "\n")), 0o600))
	}
	write()
	screen, err := screening.Open(t.Context(), screening.Config{
		Store: store.Screening, Paths: []string{path}, Contact: "appeals@example.com", Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	pgtest.Must(t, err)
	s = startWith(t, store, func(c *intents.Config) { c.Screening = screen })
	return s, func(lines ...string) {
		t.Helper()
		write(lines...)
		screen.Reload(t.Context())
	}
}

// The form is refused before anything is recorded, by a page that says which of the accounts, and neither why nor by which list.
func TestNewTransfer_Screened(t *testing.T) {
	t.Parallel()
	s, list := startScreened(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	const advice = " Use another address, or ask the operator of this service: appeals@example.com"
	record := ann.confirm(payment(keyID))
	for _, c := range []struct{ listed, says string }{
		{alice, "This service does not serve the account that sends."},
		{bob, "This service does not serve the account that receives."},
		{alice + "\n" + bob, "This service serves neither the account that sends nor the one that receives."},
	} {
		list(strings.ReplaceAll(c.listed, "\n", " Lazarus Group\n") + " Lazarus Group")
		for path, fields := range map[string][]string{newTransferPath + "/confirm": payment(keyID), newTransferPath + "/record": record} {
			page := ann.post(path, fields...).is(http.StatusForbidden, c.says+advice)
			page.alerts(c.says + advice)
			if strings.Contains(page.text(), "Lazarus") || strings.Contains(strings.ToLower(page.text()), "sanction") {
				t.Errorf("%s says of the list:\n%s", path, page.text())
			}
		}
	}
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers"); n != 0 {
		t.Errorf("%d intents are recorded", n)
	}
	list()
	ann.post(newTransferPath+"/record", record...)
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers"); n != 1 {
		t.Errorf("%d intents are recorded of the same form once it is served again", n)
	}
}

// The page of an intent stays, without what is to be sent, and says so; preflight and refund are refused.
func TestShowTransfer_Screened(t *testing.T) {
	t.Parallel()
	s, list := startScreened(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	path := "/console/transfers/" + s.record(t, s.ann(t).ID, keyID, sepolia, "inv-1").ID.String()
	const notice, send = "This service does not serve an account of this transfer, so it gives out no transaction for it.", "Send with your wallet"
	before := ann.get(path).is(http.StatusOK, "created")
	if strings.Contains(before.text(), notice) || !strings.Contains(before.text(), send) {
		t.Errorf("before it is listed:\n%s", before.text())
	}
	list(bob)
	page := ann.get(path).is(http.StatusOK, "created", "inv-1", notice)
	if strings.Contains(page.text(), send) {
		t.Errorf("the page hands out a transaction:\n%s", page.text())
	}
	ann.get("/console/transfers").is(http.StatusOK, "created")
	for _, refused := range []string{"/preflight", "/refund"} {
		if got := ann.get(path + refused); got.status != http.StatusForbidden || !strings.Contains(got.text(), "appeals@example.com") {
			t.Errorf("%s: %d %s", refused, got.status, got.text())
		}
	}
	list()
	if again := ann.get(path).is(http.StatusOK, "created"); strings.Contains(again.text(), notice) || !strings.Contains(again.text(), send) {
		t.Errorf("taken out:\n%s", again.text())
	}
}
