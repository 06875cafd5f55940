package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"golang.org/x/net/html"

	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/core/web/docs"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// Usage is drawn, told in words and given as numbers, a minute without any included.
func TestUsage(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	id, _ := ann.makeKey("busy")
	idle, _ := ann.makeKey("idle")
	at := lastMinute()
	usages := []account.Usage{
		{KeyID: uuid.MustParse(id), Minute: at, Accepted: 50, Limited: 20, Refused: 3, LastUsedAt: at},
		{KeyID: uuid.MustParse(idle), Minute: at.Add(-9 * 24 * time.Hour), Accepted: 1},
	}
	if _, err := s.store.Identities.RecordUsage(t.Context(), uuid.New(), usages, time.Now()); err != nil {
		t.Fatal(err)
	}
	page := ann.get("/console/keys/"+id).is(http.StatusOK,
		"73 requests in the last hour: 50 accepted, 20 over the limit, 3 refused.", "limit 50 a minute",
		at.Format("15:04")+" 50 20 3", at.Add(-time.Minute).Format("15:04")+" 0 0 0", "Last day as a table", "ago")
	for _, part := range []string{`class="accepted"`, `fill="url(#hour-limited)"`, `class="refused"`, `role="img"`} {
		if !strings.Contains(page.body, part) {
			t.Errorf("the chart has no %s", part)
		}
	}
	ann.get("/console/keys/"+idle).is(http.StatusOK, "No requests in the last hour.", "No requests since")
}

// Recording an intent spends the limit of its key, as a request with the key does; the pages show what is left.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	s, redis := startOnRedis(t)
	ann := s.signedUp(t, "ann@example.com")
	id, _ := ann.makeKey("busy")
	ann.get("/console/keys").is(http.StatusOK, "50 of 50 left full")
	pgtest.Exec(t, s.store, "UPDATE api_keys SET limit_requests = 1")
	record := ann.confirm(payment(id))
	ann.post(newTransferPath+"/record", record...)
	for _, path := range []string{"/console/keys", "/console/keys/" + id} {
		ann.get(path).is(http.StatusOK, "0 of 1 left", "full again in")
	}
	a := ann.post(newTransferPath+"/record", record...).is(http.StatusTooManyRequests)
	a.alerts("There were too many attempts. Try again in ")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if err := redis.Stop(); err != nil {
		t.Fatal(err)
	}
	ann.get("/console/keys").is(http.StatusOK, "1 a minute; how many are left is not known at this moment")
}

const (
	alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
)

// record stores an intent of an account.
func (s *site) record(t *testing.T, owner uuid.UUID, keyID string, toChain, reference string) *transfer.Intent {
	t.Helper()
	intent, err := s.store.Intents.InsertTransfer(t.Context(), s.draft(t, owner, keyID, toChain, reference), intents.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	return intent
}

// draft is an intent of an account that is not stored.
func (s *site) draft(t *testing.T, owner uuid.UUID, keyID string, toChain, reference string) *transfer.Intent {
	t.Helper()
	usdc := func(chain string) string {
		for _, token := range s.known.Tokens {
			if token.Symbol == "USDC" && token.ID.Chain.String() == chain {
				return token.ID.String()
			}
		}
		t.Fatalf("no USDC on %s", chain)
		return ""
	}
	const from = "eip155:11155111"
	amount := ""
	if toChain != from {
		amount = `,"amount":"4"`
	}
	body := fmt.Sprintf(`{"source":{"account":"%s:%s","token":%q,"amount":"1500000"},"destination":{"account":"%s:%s","token":%q%s},"reference":%q}`,
		from, alice, usdc(from), toChain, bob, usdc(toChain), amount, reference)
	request, issues := wire.DecodeTransferRequest([]byte(body))
	if len(issues) > 0 {
		t.Fatalf("%s: %+v", body, issues)
	}
	by := transfer.Caller{AccountID: owner, KeyID: uuid.MustParse(keyID), Environment: network.Test}
	intent, err := transfer.New(uuid.Must(uuid.NewV7()), by, request, s.known)
	if err != nil {
		t.Fatal(err)
	}
	return intent
}

func TestListTransfers(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	ann.get("/console/transfers").is(http.StatusOK, "There are no test transfers yet.", "/v2/transfers")
	owner := s.ann(t)
	keyID, _ := ann.makeKey("mover")
	first := s.record(t, owner.ID, keyID, "eip155:11155111", "<i>inv-1</i>")
	for range 26 {
		s.record(t, owner.ID, keyID, "eip155:84532", "inv-2")
	}
	if _, err := s.store.Intents.Transition(t.Context(), owner.ID, first.ID, transfer.Command{Trigger: transfer.Submit, Hash: "0x" + strings.Repeat("ab", 32)}); err != nil {
		t.Fatal(err)
	}

	t.Log("25 to a page, the rest on the next, with the same filters")
	page := ann.get("/console/transfers").is(http.StatusOK, "bridge test created inv-2 1.5 USDC Sepolia 0xf39Fd6…2266 0.000004 USDC Base Sepolia 0x709979…79C8", "Older")
	if rows := page.count("tr") - 1; rows != 25 {
		t.Errorf("%d rows", rows)
	}
	last := ann.get(page.link("/console/transfers?after=")).is(http.StatusOK, "transfer test submitted <i>inv-1</i> 1.5 USDC Sepolia 0xf39Fd6…2266 1.5 USDC Sepolia 0x709979…79C8", "Newest")
	if rows := last.count("tr") - 1; rows != 2 {
		t.Errorf("%d rows on the last page", rows)
	}
	filtered := ann.get("/console/transfers?type=bridge&status=created&chain=eip155%3A11155111").is(http.StatusOK, "Clear the filters")
	next, err := url.Parse(filtered.link("/console/transfers?after="))
	if err != nil || next.Query().Get("type") != "bridge" || next.Query().Get("status") != "created" || next.Query().Get("chain") != "eip155:11155111" {
		t.Errorf("the next page is %v, %v", next, err)
	}
	ann.get(next.RequestURI()).is(http.StatusOK, "bridge")
	ann.get("/console/transfers?status=submitted").is(http.StatusOK, "submitted")
	ann.get("/console/transfers?environment=test&status=submitted").is(http.StatusOK, "submitted")
	ann.get("/console/transfers?environment=live").is(http.StatusOK, "No transfers match these filters.")
	ann.get("/console/transfers?status=filled").is(http.StatusOK, "No transfers match these filters.")
	ann.get("/console/transfers?chain=eip155%3A1").is(http.StatusOK, "No transfers match these filters.")

	t.Log("the whole record")
	order, err := first.Order()
	if err != nil {
		t.Fatal(err)
	}
	detail := ann.get("/console/transfers/"+first.ID.String()).is(http.StatusOK, "Transfer of 1.5 USDC", "<i>inv-1</i>", "mover",
		fmt.Sprintf("0x%x", first.OrderID), fmt.Sprintf("0x%x", order.Encoded), order.Nonce.String(), "expires", alice, bob, "0x"+strings.Repeat("ab", 32))
	if _, timeline, _ := strings.Cut(detail.text(), "Timeline"); !regexp.MustCompile(`^ created .* submitted `).MatchString(timeline) {
		t.Errorf("the timeline is not in order: %s", timeline)
	}
	const call = "0xa9059cbb" // transfer(address,uint256)
	if !strings.Contains(detail.text(), call) {
		t.Errorf("no transaction to sign: %s", detail.text())
	}
	pgtest.Exec(t, s.store, "UPDATE transfers SET deadline = now() - interval '1 second' WHERE id = $1", first.ID.String())
	due := ann.get("/console/transfers/"+first.ID.String()).is(http.StatusOK, "There is no transaction to sign now.", "submitted")
	if strings.Contains(due.text(), call) {
		t.Errorf("a transaction after the deadline: %s", due.text())
	}
	bridge := page.link("/console/transfers/0") // an id, not "new"
	ann.get(bridge).is(http.StatusOK, "Bridge of 1.5 USDC", "To, at least", "0.000004 USDC", "allowance", "Base Sepolia", "If nobody fills it can be refunded on Sepolia after")
	s.signedUp(t, "bob@example.com").get(bridge).is(http.StatusNotFound, "No such transfer")
}

// An intent of an earlier version has no order, and a swap or bridge no transaction.
func TestShowTransfer_EarlierScheme(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	path := "/console/transfers/" + s.record(t, s.ann(t).ID, keyID, "eip155:84532", "inv-5").ID.String()
	pgtest.Exec(t, s.store, "UPDATE transfers SET order_scheme = 'erc7683-v1/OrderData', deployment = NULL, input_oracle = NULL, output_oracle = NULL, expires = NULL")
	page := ann.get(path).is(http.StatusOK, "There is no transaction to sign now.", "an order of the scheme erc7683-v1/OrderData , which is no longer supported")
	if strings.Contains(page.text(), "can be refunded") || page.offers("data-send") {
		t.Errorf("it can be opened or refunded: %s", page.text())
	}
}

// A record says which of its chains nobody follows, as long as something can still happen there.
func TestShowTransfer_Unwatched(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	owner := s.ann(t)
	keyID, _ := ann.makeKey("mover")
	intent := s.record(t, owner.ID, keyID, "eip155:84532", "inv-4")
	path := "/console/transfers/" + intent.ID.String()
	ann.get(path).is(http.StatusOK, "This service does not watch Sepolia and Base Sepolia now")
	s.watch(t, intent.Source.Account.Chain)
	ann.get(path).is(http.StatusOK, "This service does not watch Base Sepolia now")
	s.watch(t, intent.Destination.Account.Chain)
	if page := ann.get(path); strings.Contains(page.text(), "does not watch") {
		t.Errorf("both chains are followed: %s", page.text())
	}
	pgtest.Exec(t, s.store, "UPDATE watched_chains SET lease_until = '-infinity'")
	if err := s.live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Intents.Transition(t.Context(), owner.ID, intent.ID, transfer.Command{Trigger: transfer.Cancel}); err != nil {
		t.Fatal(err)
	}
	if page := ann.get(path); strings.Contains(page.text(), "does not watch") {
		t.Errorf("nothing can happen any more: %s", page.text())
	}
}

// watch writes that a chain is followed.
func (s *site) watch(t *testing.T, chain caip.ChainID) {
	t.Helper()
	lease := pgtest.AcquireLease(t, s.store, chain, time.Minute)
	if _, err := s.store.Intents.WriteChain(t.Context(), lease, intents.ChainWrite{Progress: &watched.Progress{Head: 102, Confirmed: 100, Final: 88}}); err != nil {
		t.Fatal(err)
	}
	if err := s.live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// expire has the orders of all intents be expired, and Sepolia, which was read before, be read since.
func expire(t *testing.T, store *rooms.Rooms) {
	t.Helper()
	pgtest.Exec(t, store, "UPDATE transfers SET deadline = now() - interval '5 min', expires = now() - interval '1 min'")
	pgtest.Exec(t, store, "UPDATE watched_chains SET complete_until = now() WHERE chain_id = 'eip155:11155111'")
}

// What the chains have shown of an intent, and what to do where its order can be refunded.
func TestShowTransfer_History(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	owner := s.ann(t)
	keyID, _ := ann.makeKey("mover")
	intent := s.record(t, owner.ID, keyID, "eip155:84532", "inv-3")
	path := "/console/transfers/" + intent.ID.String()
	if page := ann.get(path).is(http.StatusOK, "created"); strings.Contains(page.text(), "Transactions") || strings.Contains(page.text(), "Confirmations") {
		t.Errorf("before its transaction: %s", page.text())
	}
	hash := common.HexToHash(strings.Repeat("ab", 32))
	lost := common.HexToHash(strings.Repeat("cd", 32))
	if _, err := s.store.Intents.ReportTransaction(t.Context(), access.OfOperator, owner.ID, []uuid.UUID{intent.ID}, lost); err != nil {
		t.Fatal(err)
	}
	chain := intent.Source.Account.Chain
	lease := pgtest.AcquireLease(t, s.store, chain, time.Minute)
	_, err := s.store.Intents.WriteChain(t.Context(), lease, intents.ChainWrite{
		Progress: &watched.Progress{Head: 102, Confirmed: 100, Final: 88},
		Seen: []intents.Observation{{AccountID: owner.ID, TransferID: intent.ID, Transaction: transfer.Transaction{
			Role: transfer.RoleOpen, Chain: chain, Hash: hash, State: transfer.Mined, Confirmed: true, Block: &transfer.Block{Number: 100, Hash: hash},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	page := ann.get(path).is(http.StatusOK, "Confirmations 3 of 12", "confirmed", "Sepolia, block 100 "+hash.Hex(),
		lost.Hex()+" On the explorer open replaced Sepolia none", hash.Hex()+" On the explorer open mined Sepolia 100")
	for _, link := range []string{"/tx/" + hash.Hex(), "/address/" + intent.Source.Account.Address, "/token/" + intent.Source.Token.Address} {
		if page.link("https://sepolia.etherscan.io"+link) == "" {
			t.Errorf("the page has no link to %s at the explorer", link)
		}
	}
	if strings.Contains(page.text(), "/refund") {
		t.Errorf("a refund before the order has expired: %s", page.text())
	}
	ann.get(page.link("/console/transfers?environment=all&hash=")).is(http.StatusOK, "bridge", "Clear the filters")
	ann.get("/console/transfers?hash="+lost.Hex()).is(http.StatusOK, "No transfers match these filters.")

	expire(t, s.store)
	ann.get(path).is(http.StatusOK, "The order expired unfilled.", "send the refund's transaction on Sepolia", "GET http", "/v2/transfers/"+intent.ID.String()+"/refund")

	pgtest.Exec(t, s.store, "UPDATE transactions SET state = 'unsupported', log_index = NULL, confirmed_at = NULL WHERE state = 'mined'")
	ann.get(path).is(http.StatusOK, "leaves no log to check")
}

// A page that found nothing yet leads on to the rest of the list.
func TestListTransfers_EmptyPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	intent := s.record(t, s.ann(t).ID, keyID, "eip155:11155111", "inv")
	pgtest.Multiply(t, s.store, intent.ID, 15_000)
	hash := "0x" + strings.Repeat("ab", 32)
	pgtest.Exec(t, s.store, `UPDATE transfers SET status = CASE id WHEN (SELECT id FROM transfers ORDER BY id LIMIT 1) THEN 'submitted' ELSE 'confirmed' END, hash = $1`, hash)
	page := ann.get("/console/transfers?status=submitted&hash="+hash).is(http.StatusOK, "No transfers match these filters so far.", "Older")
	last := ann.get(page.link("/console/transfers?after=")).is(http.StatusOK, "transfer test submitted", "Newest")
	if rows := last.count("tr") - 1; rows != 1 {
		t.Errorf("%d rows on the last page", rows)
	}
}

func TestListAudit_Pages(t *testing.T) {
	t.Parallel()
	ann := start(t).signedUp(t, "ann@example.com")
	id, _ := ann.makeKey("one")
	for range 14 {
		ann.post("/console/keys/" + id + "/disable")
		ann.post("/console/keys/" + id + "/enable")
	}
	page := ann.get("/console/audit").is(http.StatusOK, "Older")
	if rows := page.count("tr") - 1; rows != 25 {
		t.Errorf("%d rows", rows)
	}
	ann.get(page.link("/console/audit?before=")).is(http.StatusOK, "Signed up", "Newest")
}

// An hourly entry tells its first and last time and detail, and how often it was.
func TestListAudit_Hourly(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	id := pgtest.LookUp[uuid.UUID](t, s.store, `SELECT id FROM accounts`)
	hook, at := uuid.New(), time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for _, minute := range []int{18, 30, 46} {
		e, err := account.NewAuditEntry(id, account.Actor{}, account.WebhookReplayed, at.Add(time.Duration(minute)*time.Minute))
		pgtest.Must(t, err)
		e = e.ByKey(id).OfWebhook(hook, fmt.Sprintf("at minute %d", minute))
		pgtest.Must(t, s.store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error { return tx.Audit(ctx, e) }))
	}
	ann.get("/console/audit").is(http.StatusOK, "2 Jan 2026, 10:18 – 2 Jan 2026, 10:46", "Webhook replayed",
		hook.String()+": at minute 18 and 2 more within this hour the last: "+hook.String()+": at minute 46")
}

// The message that a wallet signs has its address in the one spelling that is right.
func TestWalletMessage(t *testing.T) {
	t.Parallel()
	s := start(t)
	anyone := s.browser(t)
	a := anyone.post("/console/sign-in/wallet-message", "chain", "1", "address", strings.ToLower(alice))
	host := strings.TrimPrefix(s.url, "http://")
	if a.status != http.StatusOK || !strings.HasPrefix(a.body, host+" wants you to sign in with your Ethereum account:\n"+alice+"\n\n") ||
		!strings.Contains(a.body, "\nURI: "+s.url+"\nVersion: 1\nChain ID: 1\nNonce: ") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, fields := range [][]string{nil, {"address", alice}, {"address", "0x1", "chain", "1"}, {"address", alice, "chain", "0"}, {"address", alice, "chain", "1\n"}} {
		anyone.post("/console/sign-in/wallet-message", fields...).is(http.StatusBadRequest, "does not name a wallet")
	}
}

func TestOpenIDConnect(t *testing.T) {
	t.Parallel()
	none := start(t).browser(t)
	if strings.Contains(none.get("/console/sign-in").body, "openid-connect") {
		t.Error("a provider is offered and none is configured")
	}
	none.get("/console/sign-in/openid-connect").is(http.StatusNotFound, "There is nothing at this address.")
	some := start(t, func(c *identity.Config) {
		c.OIDC = identity.NewOIDC(identity.OIDCConfig{Issuer: "http://127.0.0.1:1", ClientID: "id", Name: "Example & Co"}, c.PublicURL)
	}).browser(t)
	some.get("/console/sign-in?next=/console/audit").is(http.StatusOK, "Sign in with Example & Co")
	some.get("/console/sign-in/openid-connect").is(http.StatusServiceUnavailable, "The sign-in provider does not answer")
	for _, code := range []string{"oidc_denied", "oidc_failed", "flow_expired", "email_taken"} {
		some.get("/console/sign-in?error=" + code).is(http.StatusOK).alerts(".")
	}
}

// The console and the API's documentation are one product: they share their colours.
func TestPalette(t *testing.T) {
	t.Parallel()
	anyone := start(t).browser(t)
	page := anyone.get("/console/sign-in")
	sheet := anyone.get(attribute(page.find(func(n *html.Node) bool { return attribute(n, "rel") == "stylesheet" }), "href")).body
	colours := regexp.MustCompile(`--[a-z]+: #[0-9a-f]{6};`).FindAllString(string(docs.Style), -1)
	if len(colours) < 10 {
		t.Fatalf("the documentation has the colours %q", colours)
	}
	for _, colour := range colours {
		if !strings.Contains(sheet, colour) {
			t.Errorf("the console has not %s", colour)
		}
	}
}
