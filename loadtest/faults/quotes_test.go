package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// A core is killed amid POSTs with quotes that two clients share, one with an Idempotency-Key: first one of two cores and then both. Clients
// repeat what has an unknown outcome. Each quote makes one intent, which both are told of, whether the answer is 201 or QUOTE_USED.
func TestQuotes_CoreKilled(t *testing.T) {
	t.Parallel()
	db := startDatabase(t, embedded.PostgresConfig{})
	root, err := stack.FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	settlements := filepath.Join(root, "deploy", "data", "settlements-lifi-testnets.json")
	if err := embedded.Run(t.Context(), db.command(shared.Binaries, "chains", "import", settlements)); err != nil {
		t.Fatal(err)
	}
	cores := startCores(t, db, 2, "CORE_QUOTES_FILE="+startQuoting(t), "CORE_QUOTES_ALLOW=127.0.0.0/8")
	fleet := startGateways(t, 1, fleetConfig{redis: startRedis(t).url(), core: urlsOf(cores), env: patient()})
	u := &quoteUses{t: t, url: fleet[0].URL, key: db.newUnlimitedKeys(t, 1)[0], made: map[string]string{}, keyed: map[string]int{}}
	for _, killed := range [][]*coreServer{cores[:1], cores[1:], cores} {
		u.ask(4)
		before, uses := u.count(), u.begin()
		asynctest.Eventually(t, "quotes are used", func() bool { return u.count() >= before+members })
		for _, c := range killed {
			c.Kill()
		}
		for _, c := range killed {
			c.Start(t)
			c.AwaitReady(t)
		}
		uses.Wait()
	}
	u.mustBeStored(db)
	for quote, status := range maps.Clone(u.keyed) {
		if again := u.use(quote, quote); again != status {
			t.Errorf("a request with an Idempotency-Key was answered %d and then %d", status, again)
		}
	}
}

const (
	quotesOfAnswer        = 20
	quotedFrom, quotedTo  = "eip155:11155111", "eip155:84532"
	usdcSepolia, usdcBase = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
)

// startQuoting serves a provider that offers many amounts for whatever is sent, for ten minutes, and returns the file that names it.
func startQuoting(t *testing.T) (file string) {
	t.Helper()
	offers := providertest.Quotes{Holds: 10 * time.Minute}
	for n := range quotesOfAnswer {
		offers.Gives = append(offers.Gives, strconv.Itoa(900+n)) // of 1000: no offer is far from the others
	}
	server := httptest.NewServer(offers)
	t.Cleanup(server.Close)
	file = filepath.Join(t.TempDir(), "quotes.json")
	text := fmt.Sprintf(`[{"name":"solver","kind":"oif","url":%q,"environment":"test","deployment":"lifi-v2"}]`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// quoteUses are requests that make intents of quotes.
type quoteUses struct {
	t        *testing.T
	url, key string

	mu     sync.Mutex
	quotes []string // that nobody has used
	// made has the intent that clients were told of, by quote.
	made map[string]string
	// keyed has the status of the request with an Idempotency-Key, by quote.
	keyed            map[string]int
	answered, failed int
}

// post sends a request, with an Idempotency-Key if it is not empty.
func (u *quoteUses) post(path, body, idempotencyKey string) (s sample, answer []byte) {
	s.key = u.key
	answer, _ = s.send(context.WithoutCancel(u.t.Context()), direct, http.MethodPost, u.url+path, body, idempotencyKey)
	if s.status > 0 && s.fault != "" {
		u.t.Errorf("%s: %s", path, s.fault)
	}
	return s, answer
}

// ask asks for quotes so many times.
func (u *quoteUses) ask(times int) {
	u.t.Helper()
	body := fmt.Sprintf(`{"source":{"account":"%s:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","token":"%[1]s:%s","amount":"1000"},
		"destination":{"account":"%s:0x70997970C51812dc3A010C7d01b50e0d17dc79C8","token":"%[3]s:%s"}}`, quotedFrom, usdcSepolia, quotedTo, usdcBase)
	for range times {
		var got struct{ Quotes []struct{ ID string } }
		asynctest.Eventually(u.t, "there are quotes", func() bool {
			s, answer := u.post("/v2/quotes", body, "")
			return s.status == http.StatusOK && json.Unmarshal(answer, &got) == nil
		})
		if len(got.Quotes) != quotesOfAnswer {
			u.t.Fatalf("%d quotes", len(got.Quotes))
		}
		for _, q := range got.Quotes {
			u.quotes = append(u.quotes, q.ID)
		}
	}
}

// begin has members use all the quotes, each by two at about the same time.
func (u *quoteUses) begin() *sync.WaitGroup {
	type turn struct{ quote, key string }
	var turns []turn
	for _, q := range u.quotes {
		turns = append(turns, turn{q, q}, turn{q, ""})
	}
	u.quotes = nil
	queue, uses := make(chan turn, len(turns)), &sync.WaitGroup{}
	for _, t := range turns {
		queue <- t
	}
	close(queue)
	for range members {
		uses.Go(func() {
			for t := range queue {
				if status := u.use(t.quote, t.key); t.key != "" {
					u.mu.Lock()
					u.keyed[t.quote] = status
					u.mu.Unlock()
				}
			}
		})
	}
	return uses
}

// use sends a quote until the answer says which intent is made of it, notes that and returns the status.
func (u *quoteUses) use(quote, idempotencyKey string) (status int) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); <-ticker.C {
		s, body := u.post("/v2/transfers", `{"quoteId":"`+quote+`"}`, idempotencyKey)
		if s.failed() {
			u.mu.Lock()
			u.failed++
			u.mu.Unlock()
			continue
		}
		var answer struct {
			ID, Code string
			Details  struct{ TransferID string }
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			u.t.Error(err)
		}
		switch {
		case s.status == http.StatusCreated:
			u.note(quote, answer.ID)
		case s.status == http.StatusConflict && answer.Code == "QUOTE_USED":
			u.note(quote, answer.Details.TransferID)
		default:
			u.t.Errorf("the use of a quote: %d %s", s.status, body)
		}
		return s.status
	}
	u.t.Errorf("quote %s was not used in time", quote)
	return 0
}

func (u *quoteUses) note(quote, intent string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answered++
	if other, known := u.made[quote]; known && other != intent {
		u.t.Errorf("quote %s made %s and %s", quote, other, intent)
	}
	u.made[quote] = intent
}

// count is how many uses were answered.
func (u *quoteUses) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.answered
}

// mustBeStored checks that each quote has made the intent that clients were told of and no other.
func (u *quoteUses) mustBeStored(db *database) {
	u.t.Helper()
	stored := map[string][]string{}
	db.connect(u.t, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT quote_id::text, id::text FROM transfers WHERE quote_id IS NOT NULL
			UNION SELECT id::text, transfer_id::text FROM quotes WHERE transfer_id IS NOT NULL`)
		if err != nil {
			return err
		}
		var quote, intent string
		_, err = pgx.ForEachRow(rows, []any{&quote, &intent}, func() error {
			stored[quote] = append(stored[quote], intent)
			return nil
		})
		return err
	})
	for quote, intent := range u.made {
		if !slices.Equal(stored[quote], []string{intent}) {
			u.t.Errorf("quote %s made %s, and %v are stored", quote, intent, stored[quote])
		}
	}
	if len(stored) != len(u.made) {
		u.t.Errorf("%d quotes have made an intent that clients were told of, and %d in all", len(u.made), len(stored))
	}
	u.t.Logf("%d quotes, %d answers, %d failures", len(u.made), u.answered, u.failed)
}
