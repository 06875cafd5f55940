package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
)

const (
	kills   = 4
	writers = 16
	secret  = "the secret that this test shares with core"
)

// A core that is killed in the midst of writes loses no intent that it acknowledged, and a client that repeats a request
// with its Idempotency-Key never makes a second one.
func TestKilledCoreLosesNothing(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	s, err := stack.Start(t.Context(), stack.Config{
		Data: t.TempDir(), Binaries: binaries, Listen: "127.0.0.1:0", InProcessRedis: true, Log: &log,
		DatabaseURL: os.Getenv("DATABASE_URL"),
		CoreEnv:     []string{"CORE_GATEWAY_SECRET=" + secret}, GatewayEnv: []string{"GATEWAY_CORE_SECRET=" + secret},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := &writing{core: s.Env().CoreURL, account: uuid.New(), acknowledged: map[string]string{}}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() { w.write(ctx, n) })
	}
	for kill := range kills {
		if !w.await(ctx, (kill+1)*100) {
			t.Fatalf("only %d intents before kill %d", w.count(), kill+1)
		}
		if err := s.Kill(stack.Core); err != nil {
			t.Fatal(err)
		}
		if err := s.AwaitReady(ctx, stack.Core); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	all.Wait()
	w.check(t, s.Env().DatabaseURL)
}

// writing is what clients have been told.
type writing struct {
	core    string
	account uuid.UUID

	mu           sync.Mutex
	acknowledged map[string]string // Idempotency-Key to intent id
	faults       []string
}

// write makes one intent after the other, each repeated with its key until it is acknowledged.
func (w *writing) write(ctx context.Context, writer int) {
	client := &http.Client{Timeout: 10 * time.Second}
	pause := time.NewTicker(10 * time.Millisecond) // between tries, as a polite client makes
	defer pause.Stop()
	for n := 0; ; n++ {
		key := fmt.Sprintf("%d-%d", writer, n)
		for id := ""; id == ""; {
			if ctx.Err() != nil {
				return
			}
			if id = w.try(ctx, client, key); id == "" {
				<-pause.C
				continue
			}
			w.note(key, id)
		}
	}
}

func (w *writing) try(ctx context.Context, client *http.Client, key string) (id string) {
	body := fmt.Sprintf(`{"source":{"account":%q,"token":%q,"amount":"1"},"destination":{"account":%q}}`,
		on(11155111, alice), on(11155111, usdc), on(11155111, bob))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.core+"/v2/transfers", strings.NewReader(body))
	if err != nil {
		return ""
	}
	for name, value := range map[string]string{
		"X-Gateway-Secret": secret, "X-Account-Id": w.account.String(), "X-Key-Id": w.account.String(), "X-Key-Env": "test",
		"Content-Type": "application/json", "Idempotency-Key": key,
	} {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return "" // core is down; a client would try again
	}
	defer response.Body.Close()
	var read bytes.Buffer
	if _, err := read.ReadFrom(response.Body); err != nil {
		return ""
	}
	var made record
	if response.StatusCode == http.StatusCreated && json.Unmarshal(read.Bytes(), &made) == nil {
		return made.ID
	}
	if response.StatusCode != http.StatusServiceUnavailable {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faults = append(w.faults, fmt.Sprintf("%d %s", response.StatusCode, read.String()))
	}
	return ""
}

func (w *writing) note(key, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged[key] = id
}

func (w *writing) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acknowledged)
}

func (w *writing) await(ctx context.Context, count int) bool {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for w.count() < count {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// check holds what clients were told against what is stored.
func (w *writing) check(t *testing.T, databaseURL string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	// One snapshot for both readings: core may still be writing what its clients no longer wait for.
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(t.Context(), `SELECT idempotency_key, id::text FROM transfers WHERE account_id = $1`, w.account)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{}
	var key, id string
	if _, err := pgx.ForEachRow(rows, []any{&key, &id}, func() error {
		if other, twice := stored[key]; twice {
			t.Errorf("key %s made both %s and %s", key, other, id)
		}
		stored[key] = id
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for key, id := range w.acknowledged {
		if stored[key] != id {
			t.Errorf("key %s was acknowledged as %s and is stored as %q", key, id, stored[key])
		}
	}
	if unacknowledged := len(stored) - len(w.acknowledged); unacknowledged > writers {
		t.Errorf("%d intents stored that nobody was told of, more than there are writers", unacknowledged)
	}
	for _, fault := range w.faults {
		t.Error(fault)
	}
	var events int
	if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM events WHERE account_id = $1 AND to_status = 'created'`, w.account).Scan(&events); err != nil {
		t.Fatal(err)
	}
	if events != len(stored) {
		t.Errorf("%d intents, %d events of their creation", len(stored), events)
	}
	t.Logf("%d intents acknowledged over %d kills, none lost, none doubled", len(w.acknowledged), kills)
}
