package pgtest

import (
	"bytes"
	_ "embed"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/outbound"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// The registry of the tests: Ethereum, which is live and has no settlement, and four testnets, of which Sepolia's settlement
// fills swaps, Base Sepolia's does not, Arbitrum Sepolia has none and Far's number has more than 32 bits. All have USDC.
var (
	//go:embed registry/chains.json
	ChainsJSON []byte
	//go:embed registry/tokens.json
	TokensJSON []byte
)

// LoadRegistry imports ChainsJSON and TokensJSON and returns the registry they make.
func LoadRegistry(tb testing.TB, store *rooms.Rooms) *registry.Snapshot {
	tb.Helper()
	chains, err := registry.ReadChainList(bytes.NewReader(ChainsJSON))
	if err != nil || len(chains.Refused) > 0 {
		tb.Fatalf("read the chains: %v, refused %+v", err, chains.Refused)
	}
	tokens, err := registry.ReadTokenList(bytes.NewReader(TokensJSON), func(caip.ChainID) bool { return true })
	if err != nil || len(tokens.Refused) > 0 {
		tb.Fatalf("read the tokens: %v, refused %+v", err, tokens.Refused)
	}
	silent := func(int) {}
	if _, err := store.Registry.ImportChains(tb.Context(), chains.Chains, time.Now(), silent); err != nil {
		tb.Fatal(err)
	}
	if _, err := store.Registry.ImportTokens(tb.Context(), tokens.Tokens, time.Now(), silent); err != nil {
		tb.Fatal(err)
	}
	snapshot, err := store.Registry.Registry(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return snapshot
}

// Requests on the chains of LoadRegistry, and their parts.
const (
	Alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	Bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

	MainnetUSDC = "eip155:1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
	SepoliaUSDC = "eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	SepoliaWETH = "eip155:11155111:0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"
	BaseUSDC    = "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e"

	TransferBody = `{"source":{"account":"eip155:11155111:` + Alice + `","token":"` + SepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:11155111:` + Bob + `"}}`
	SwapBody = `{"source":{"account":"eip155:11155111:` + Alice + `","token":"` + SepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:11155111:` + Bob + `","token":"` + SepoliaWETH + `","amount":"4"},"reference":"inv-42"}`
	LiveBody = `{"source":{"account":"eip155:1:` + Alice + `","token":"` + MainnetUSDC + `","amount":"5"},
		"destination":{"account":"eip155:1:` + Bob + `"}}`
	BridgeBody = `{"source":{"account":"eip155:11155111:` + Alice + `","token":"` + SepoliaUSDC + `","amount":"5"},
		"destination":{"account":"eip155:84532:` + Bob + `","token":"` + BaseUSDC + `","amount":"4"}}`
)

// NewIntent makes the intent of an account that a request body asks for.
func NewIntent(tb testing.TB, known *registry.Snapshot, owner uuid.UUID, body string) *transfer.Intent {
	tb.Helper()
	by := transfer.Caller{AccountID: owner, KeyID: uuid.New(), Environment: network.Test}
	intent, err := transfer.New(uuid.Must(uuid.NewV7()), by, ParseRequest(tb, body), known)
	if err != nil {
		tb.Fatal(err)
	}
	return intent
}

// ParseRequest parses the body of a request, which must be valid.
func ParseRequest(tb testing.TB, body string) wire.TransferRequest {
	tb.Helper()
	request, issues := wire.DecodeTransferRequest([]byte(body))
	if len(issues) > 0 {
		tb.Fatalf("issues: %+v", issues)
	}
	return request
}

// Idempotent is the use of a key by a test key's request with this body.
func Idempotent(tb testing.TB, key, body string) intents.Idempotency {
	tb.Helper()
	return intents.Idempotency{Key: key, Environment: network.Test, Request: ParseRequest(tb, body)}
}

// InsertTransfer stores the intent that a request body asks for.
func InsertTransfer(tb testing.TB, store *rooms.Rooms, known *registry.Snapshot, owner uuid.UUID, body string) *transfer.Intent {
	tb.Helper()
	intent := NewIntent(tb, known, owner, body)
	if _, err := store.Intents.InsertTransfer(tb.Context(), intent, intents.Idempotency{}); err != nil {
		tb.Fatal(err)
	}
	return intent
}

// Amounts compares big numbers by value.
var Amounts = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })

// List reads a whole list.
func List(t *testing.T, store *rooms.Rooms, owner uuid.UUID, filter intents.TransferFilter) []transfer.Summary {
	t.Helper()
	var summaries []transfer.Summary
	for summary, err := range store.Intents.Transfers(t.Context(), owner, filter) {
		if err != nil {
			t.Fatal(err)
		}
		summaries = append(summaries, summary)
	}
	return summaries
}

// Multiply makes count copies of the one intent, each a millisecond older than the one before.
func Multiply(tb testing.TB, store *rooms.Rooms, id uuid.UUID, count int) {
	tb.Helper()
	// A function in FROM is called once a row; (f(…)).* in the list of columns calls it once a column.
	Exec(tb, store, `INSERT INTO transfers SELECT made.* FROM transfers i, generate_series(1, $1) n,
		jsonb_populate_record(i, jsonb_build_object('id', (lpad(to_hex(1700000000000 - n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
		'order_id', sha256(n::text::bytea))) AS made WHERE i.id = $2`, count, id.String())
}

// InsertWebhook stores a test endpoint of an account.
func InsertWebhook(t *testing.T, store *rooms.Rooms, r *webhooks.Rules, owner *account.Account) (*webhooks.Endpoint, webhooks.Secret) {
	t.Helper()
	e, secret, err := r.New(feed.Owner{AccountID: owner.ID, Environment: network.Test}, webhooks.Draft{URL: "https://example.com"}, Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Webhooks.InsertWebhook(t.Context(), access.OfOperator, e, AuditEntry(owner.ID, account.WebhookCreated), [32]byte{}); err != nil {
		t.Fatal(err)
	}
	return e, secret
}

// WebhookRules are rules that allow public addresses and seal secrets with these keys.
func WebhookRules(t *testing.T, current, previous []byte) *webhooks.Rules {
	t.Helper()
	sealer, err := webhooks.NewSealer(current, previous)
	if err != nil {
		t.Fatal(err)
	}
	return &webhooks.Rules{Networks: outbound.NewNetworks(nil), Sealer: sealer}
}

// InsertQuote stores a quote of what BridgeBody brings, which holds for an hour.
func InsertQuote(tb testing.TB, store *rooms.Rooms, known *registry.Snapshot, owner uuid.UUID, change ...func(*quote.Quote)) quote.Quote {
	tb.Helper()
	request := ParseRequest(tb, BridgeBody)
	request.Destination.Amount = ""
	now := store.Now().Truncate(time.Microsecond)
	route, err := transfer.NewRoute(now, request, known)
	if err != nil {
		tb.Fatal(err)
	}
	q := quote.Quote{
		ID: transfer.NewID(now), AccountID: owner, Environment: network.Test, Provider: "solver", Kind: quote.ExactInput, Type: route.Type,
		Source: route.Source, Destination: route.Destination, Deadline: route.Deadline, Settlement: route.Settlements[0],
		CreatedAt: now, ExpiresAt: route.Deadline,
	}
	q.Destination.Amount = big.NewInt(4)
	for _, c := range change {
		c(&q)
	}
	if err := store.Quotes.Insert(tb.Context(), access.OfOperator, []quote.Quote{q}); err != nil {
		tb.Fatal(err)
	}
	return q
}

// NewQuotedIntent makes the intent of a quote, which it does not store.
func NewQuotedIntent(tb testing.TB, known *registry.Snapshot, q quote.Quote) *transfer.Intent {
	tb.Helper()
	leg := func(l transfer.Leg) wire.Leg {
		return wire.Leg{Account: l.Account, Token: l.Token, Amount: l.Amount.String()}
	}
	request := wire.TransferRequest{Source: leg(q.Source), Destination: leg(q.Destination), Deadline: q.Deadline, QuoteID: q.ID.String()}
	by := transfer.Caller{AccountID: q.AccountID, KeyID: uuid.New(), Environment: q.Environment}
	of := transfer.Quote{ID: q.ID, Provider: q.Provider, ExpiresAt: q.ExpiresAt}
	intent, _, err := transfer.NewQuoted(uuid.Must(uuid.NewV7()), by, request, known, q.Settlement, of)
	if err != nil {
		tb.Fatal(err)
	}
	return intent
}

// TestFeed is an account's feed of test events.
func TestFeed(accountID uuid.UUID) feed.Owner {
	return feed.Owner{AccountID: accountID, Environment: network.Test}
}

// AssignPositions runs rounds until no event waits.
func AssignPositions(tb testing.TB, store *rooms.Rooms) {
	tb.Helper()
	for more := true; more; {
		round, err := store.Feed.AssignPositions(tb.Context(), true, false)
		if err != nil || round.Skipped {
			tb.Fatalf("%+v, %v", round, err)
		}
		more = round.More
	}
}

// ReadFeed reads an owner's whole feed from a position.
func ReadFeed(tb testing.TB, store *rooms.Rooms, owner feed.Owner, after int64) (events []feed.Event, next int64) {
	tb.Helper()
	for {
		page, err := store.Feed.EventPage(tb.Context(), owner, after, feed.Filter{}, 1000)
		if err != nil {
			tb.Fatal(err)
		}
		events, after = append(events, page.Events...), page.Next
		if page.End {
			return events, after
		}
	}
}

// Steps are the events in short.
func Steps(events []feed.Event) (short []string) {
	for _, e := range events {
		short = append(short, fmt.Sprintf("%s %d", e.Type, e.Sequence))
	}
	return short
}

// CancelTransfer cancels an intent.
func CancelTransfer(tb testing.TB, store *rooms.Rooms, intent *transfer.Intent) {
	tb.Helper()
	if _, err := store.Intents.Transition(tb.Context(), intent.AccountID, intent.ID, transfer.Command{Trigger: transfer.Cancel}); err != nil {
		tb.Fatal(err)
	}
}

// AcquireLease takes the lease of a chain that nobody holds.
func AcquireLease(tb testing.TB, store *rooms.Rooms, chain caip.ChainID, ttl time.Duration) watched.Lease {
	tb.Helper()
	leases, err := store.Watched.AcquireLeases(tb.Context(), []caip.ChainID{chain}, nil, "test", ttl)
	if err != nil || len(leases) == 0 {
		tb.Fatalf("acquire the lease of %s: %d leases, %v", chain, len(leases), err)
	}
	return leases[0]
}
