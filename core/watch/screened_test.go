package watch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/screening"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// screened has a watcher that knows a list with these addresses.
func (w *world) screened(addresses ...string) (metrics *prometheus.Registry, log *asynctest.Buffer) {
	w.Helper()
	path, metrics, log := filepath.Join(w.TempDir(), "list.txt"), prometheus.NewRegistry(), &asynctest.Buffer{}
	pgtest.Must(w.T, os.WriteFile(path, []byte(strings.Join(addresses, " case 12\n")+" case 12"), 0o600))
	var err error
	w.screen, err = screening.Open(w.Context(), screening.Config{
		Store: w.store.Screening, Paths: []string{path}, Log: telemetry.NewLogger(log, "core"), Metrics: metrics,
	})
	pgtest.Must(w.T, err)
	w.connect()
	for id := range w.chains {
		w.follow(id)
	}
	return metrics, log
}

// wantHits compares the recorded hits, as "stage side address label environment", with whether each names the account and an intent.
func (w *world) wantHits(step string, want ...string) {
	w.Helper()
	if _, err := w.screen.WriteHits(w.Context()); err != nil {
		w.Fatal(err)
	}
	text := pgtest.LookUp[string](w.T, w.store, `SELECT coalesce(string_agg(concat_ws(' ', stage, side, address, list_label, environment,
		CASE WHEN account_id = '`+w.owner.String()+`' AND key_id IS NULL AND request_id = '' AND intent_id IN (SELECT id FROM transfers) THEN 'intent' END),
		chr(10) ORDER BY side, address), '') FROM screening_hits`)
	if diff := cmp.Diff(strings.Join(want, "\n"), text); diff != "" {
		w.Errorf("%s: hits (-want +got):\n%s", step, diff)
	}
}

// An effect of a listed account is a hit, once an hour, and is followed all the same.
func TestFollow_Screened(t *testing.T) {
	t.Parallel()
	const payer, recipient = "chain source " + alice + " case 12 test intent", "chain destination " + bob + " case 12 test intent"
	for name, c := range map[string]struct {
		listed       []string
		opened, paid []string
	}{
		"the payer":     {[]string{alice}, []string{payer}, []string{payer}},
		"the recipient": {[]string{bob}, []string{recipient}, []string{recipient}},
		"both":          {[]string{alice, bob}, []string{recipient, payer}, []string{recipient, payer}},
		"another":       {[]string{"0x098B716B8Aaf21512996dC57EB0615e2383E2f96"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			metrics, log := w.screened(c.listed...)
			intent := w.bridge()
			w.mine(sepolia)
			w.wantHits("nothing has happened on chain")
			w.mine(sepolia, w.open(intent))
			w.wantHits("opened", c.opened...)
			w.deepen(sepolia, confirmations)
			w.mine(baseSepolia, w.fill(intent))
			w.deepen(baseSepolia, 2*confirmations)
			w.want(intent, "created submitted confirmed filled")
			w.wantHits("filled", c.paid...)
			if n := metricstest.Of(t, metrics, "intents_core_screening_checks_total")["listed chain"]; n > 0 != (len(c.paid) > 0) {
				t.Errorf("%v checks of the chain are counted as listed", n)
			}
			if n := pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM audit_log"); n != 0 { // nothing was refused
				t.Errorf("%d entries are in the audit log", n)
			}
			for _, secret := range append(c.listed, "case 12") {
				if strings.Contains(strings.ToLower(log.String()), strings.ToLower(secret)) {
					t.Errorf("the log has %s", secret)
				}
			}
		})
	}
}

// A fill that is seen before its order changes no status, and is a hit of its recipient; a transfer is one of its payer.
func TestFollow_ScreenedEffects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.screened(bob)
	early := w.bridge()
	w.mine(baseSepolia, w.fill(early))
	w.deepen(baseSepolia, 2*confirmations)
	w.want(early, "created")
	w.wantHits("a fill", "chain destination "+bob+" case 12 test intent")

	w = newWorld(t, 1)
	w.screened(alice)
	paid, tx := w.reported(usdc)
	w.wantHits("reported to the store alone")
	w.mine(sepolia, tx)
	w.deepen(sepolia, confirmations)
	w.due()
	w.tick(sepolia)
	w.want(paid, "created submitted confirmed")
	w.wantHits("paid", "chain source "+alice+" case 12 test intent")
}
