package console_test

import (
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/net/html"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rpc"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

var (
	sepoliaID     = caip.EIP155Chain(11155111)
	baseSepoliaID = caip.EIP155Chain(84532)
	usdc          = common.HexToAddress("0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238")
)

// nodes are providers of chains, one each.
func nodes(t *testing.T, all map[caip.ChainID]*rpctest.Node) *rpc.Client {
	t.Helper()
	providers := rpc.Providers{}
	var every []*rpctest.Node
	for id, node := range all {
		providers[id] = []rpc.Endpoint{{URL: telemetry.Secret(node.URL()), RequestsPerSecond: 1000}}
		every = append(every, node)
	}
	client, err := rpc.NewClient(providers, rpc.Options{Transport: rpctest.Transport(every...)})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// payer is a site with an account, a key of it, and nodes where Alice has 9 units of USDC.
type payer struct {
	*site
	*browser

	owner   uuid.UUID
	keyID   string
	chain   *rpctest.Chain // Sepolia
	sepolia *rpctest.Node
}

func newPayer(t *testing.T) *payer {
	t.Helper()
	source := rpctest.NewChain(11155111)
	source.SetFunction(usdc, rpctest.BalanceOf, func(rpctest.Call) ([]byte, error) { return rpctest.Word(9), nil })
	source.SetFunction(usdc, rpctest.NewSelector("transfer(address,uint256)"), func(rpctest.Call) ([]byte, error) { return rpctest.Word(1), nil })
	source.SetGas(func(rpctest.Call) (uint64, error) { return 123_456, nil })
	source.SetTime(time.Now())
	source.MineEmpty(1)
	source.SetFunction(common.HexToAddress("0x010011155111"), rpctest.OrderStatus, func(rpctest.Call) ([]byte, error) {
		return rpctest.Word(uint64(transfer.OrderDeposited)), nil
	})
	p := &payer{chain: source, sepolia: rpctest.NewNode(source)}
	chains := nodes(t, map[caip.ChainID]*rpctest.Node{sepoliaID: p.sepolia})
	p.site = startWith(t, pgtest.New(t), func(c *intents.Config) { c.Chains = chains })
	p.browser = p.signedUp(t, "ann@example.com")
	p.owner = p.ann(t).ID
	p.keyID, _ = p.makeKey("mover")
	return p
}

// sending is what the script of a page is told.
type sending struct {
	ID, Chain string
	Calls     struct {
		Version, ChainID, From string
		Calls                  []struct{ To, Value, Data string }
	}
	Allowances []allowance
}

type allowance struct {
	Query  struct{ To, Data string }
	Amount string
	Reset  struct{ To, Value, Data string }
}

func (a *answer) sending() (s sending) {
	a.t.Helper()
	n := a.find(func(n *html.Node) bool { return attribute(n, "data-send") != "" })
	if n == nil {
		a.t.Fatalf("%s offers nothing to send:\n%s", a.what, a.text())
	}
	if err := json.Unmarshal([]byte(attribute(n, "data-send")), &s); err != nil {
		a.t.Fatal(err)
	}
	return s
}

func (a *answer) offers(attr string) bool {
	return a.find(func(n *html.Node) bool { return attribute(n, attr) != "" }) != nil
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	ann := newPayer(t)
	intent := ann.record(t, ann.owner, ann.keyID, sepoliaID.String(), "inv-1")
	path := "/console/transfers/" + intent.ID.String()
	page := ann.get(path).is(http.StatusOK, "Send with your wallet", "No wallet was found")
	sent := page.sending()
	want := sending{ID: intent.ID.String(), Chain: "Sepolia"}
	want.Calls.Version, want.Calls.ChainID, want.Calls.From = "2.0.0", "0xaa36a7", alice
	want.Calls.Calls = []struct{ To, Value, Data string }{{usdc.Hex(), "0x0", sent.Calls.Calls[0].Data}}
	want.Allowances = sent.Allowances[:0]
	if diff := cmp.Diff(want, sent); diff != "" || !strings.HasPrefix(sent.Calls.Calls[0].Data, "0xa9059cbb") {
		t.Errorf("the script is told (-want +got):\n%s", diff)
	}

	t.Log("too little money")
	checks := ann.get(page.link(path+"/preflight")).is(http.StatusOK, "not ok balance The account has 9 units of the token, and the transaction needs 1500000.",
		"ok deadline", "ok simulation", "about 123456 gas")
	if checks.find(func(n *html.Node) bool {
		return attribute(n, "data-check") == "balance" && attribute(n, "data-ok") == "false"
	}) == nil {
		t.Error("the script does not see that the balance is too low")
	}

	ann.sepolia.Set(func(f *rpctest.Faults) { f.Down = true })
	ann.get(path+"/preflight").is(http.StatusServiceUnavailable, "No node of the chain answers at this moment.")
	ann.get(path).is(http.StatusOK, "Send with your wallet")
	ann.signedUp(t, "bob@example.com").get(path+"/preflight").is(http.StatusNotFound, "No such transfer")

	pgtest.Exec(t, ann.store, "UPDATE transfers SET deadline = now() - interval '1 min'")
	ann.get(path+"/preflight").is(http.StatusConflict, "Nothing to send")
	if ann.get(path).offers("data-send") {
		t.Error("a transaction is offered after the deadline")
	}
}

// The page tells of the calls that its script sends. What they bring, and what no node tells, is not marked as wrong.
func TestPreflight_Neutral(t *testing.T) {
	t.Parallel()
	ann := newPayer(t)
	path := "/console/transfers/" + ann.record(t, ann.owner, ann.keyID, baseSepoliaID.String(), "inv-1").ID.String() + "/preflight"
	allows := func(units uint64) {
		ann.chain.SetFunction(usdc, rpctest.BalanceOf, func(rpctest.Call) ([]byte, error) { return rpctest.Word(1_500_000), nil })
		ann.chain.SetFunction(usdc, rpctest.Allowance, func(rpctest.Call) ([]byte, error) { return rpctest.Word(units), nil })
	}
	ann.chain.SetFunction(common.HexToAddress("0x010011155111"), rpctest.OrderStatus, func(rpctest.Call) ([]byte, error) { return rpctest.Word(0), nil })
	ann.chain.SetCode(common.HexToAddress("0x010011155111"), []byte{1})
	for _, c := range []struct {
		allowance  uint64
		allows, in string
		gas        string
	}{
		{0, "needed allowance", "ok simulation The approval and then the transaction succeed", "about 246912 gas"},
		{7, "needed allowance", "ok simulation The reset of the allowance, the approval and then the transaction succeed", "about 370368 gas"},
		{1_500_000, "ok allowance", "ok simulation The transaction succeeds", "about 123456 gas"},
	} {
		allows(c.allowance)
		if page := ann.get(path).is(http.StatusOK, c.allows, c.in, c.gas); strings.Contains(page.text(), "not ok") {
			t.Errorf("an allowance of %d: %s", c.allowance, page.text())
		}
	}
	ann.sepolia.Set(func(f *rpctest.Faults) {
		f.Errors = map[string]rpctest.Error{"eth_simulateV1": {Code: -32601, Message: "no such method"}}
	})
	allows(0)
	if page := ann.get(path).is(http.StatusOK, "needed allowance", "not known simulation"); strings.Contains(page.text(), "not ok") || strings.Contains(page.text(), "gas.") {
		t.Errorf("nobody knows: %s", page.text())
	}
}

// Without nodes the page says that nothing can be checked, and asks nobody.
func TestPreflight_ChainNotWatched(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	owner := s.ann(t)
	keyID, _ := ann.makeKey("mover")
	path := "/console/transfers/" + s.record(t, owner.ID, keyID, sepoliaID.String(), "inv-1").ID.String()
	page := ann.get(path).is(http.StatusOK, "no node of Sepolia to ask")
	if page.offers("data-preflight") {
		t.Error("the page asks for checks that cannot be made")
	}
	page.sending()
	ann.get(path+"/preflight").is(http.StatusUnprocessableEntity, "no node of this chain to ask")
}

func TestReportTransaction(t *testing.T) {
	t.Parallel()
	ann := newPayer(t)
	intent := ann.record(t, ann.owner, ann.keyID, sepoliaID.String(), "inv-1")
	path := "/console/transfers/" + intent.ID.String()
	hash := "0x" + strings.Repeat("ab", 32)
	for _, bad := range []string{"", "0x12", hash + "00", hash[2:]} {
		ann.post(path+"/transaction", "hash", bad).is(http.StatusBadRequest, "created").tied("hash", "A transaction hash is 0x and 64 hexadecimal digits.")
	}
	ann.post(path+"/transaction", "hash", hash, "chain", "1").is(http.StatusBadRequest, "Not this page's form")
	ann.signedUp(t, "bob@example.com").post(path+"/transaction", "hash", hash).is(http.StatusNotFound, "No such transfer")
	ann.send(http.MethodPost, path+"/transaction", strings.NewReader("hash="+hash), "Content-Type", "application/x-www-form-urlencoded",
		"Sec-Fetch-Site", "cross-site").is(http.StatusForbidden, "from another site")
	ann.get(path + "/transaction").leadsTo(path)

	for _, same := range []string{" " + strings.ToUpper(hash[2:]), hash} {
		ann.post(path+"/transaction", "hash", strings.Replace(same, " ", " 0x", 1)).leadsTo(path + "?done=reported")
	}
	page := ann.get(path+"?done=reported").is(http.StatusOK, "The transaction is reported.", "submitted", hash, "send pending")
	if page.offers("data-send") {
		t.Error("another transaction is offered, which would pay again")
	}

	ann.confirm(t, intent, transfer.RoleSend, common.HexToHash(hash))
	carried := ann.get(path).is(http.StatusOK, "confirmed")
	if carried.offers("data-report") || carried.offers("data-refresh") {
		t.Error("a final intent has a form, or is followed")
	}
	other := "0x" + strings.Repeat("cd", 32)
	ann.post(path+"/transaction", "hash", other).is(http.StatusConflict, "Another transaction has carried this intent.")
	ann.post(path+"/transaction", "hash", hash).leadsTo(path + "?done=reported")
}

// confirm writes that the watcher has seen the effect of an intent's transaction.
func (p *payer) confirm(t *testing.T, intent *transfer.Intent, role transfer.Role, hash common.Hash) {
	t.Helper()
	p.observe(t, intent, transfer.Transaction{
		Role: role, Hash: hash, State: transfer.Mined, Block: &transfer.Block{Number: 100, Hash: common.BigToHash(big.NewInt(100))},
	})
}

// observe writes that the watcher has seen what became of an intent's transaction on its source chain.
func (p *payer) observe(t *testing.T, intent *transfer.Intent, seen transfer.Transaction) {
	t.Helper()
	chain := intent.Source.Account.Chain
	seen.Chain, seen.Confirmed = chain, true
	lease := pgtest.AcquireLease(t, p.store, chain, time.Minute)
	_, err := p.store.Intents.WriteChain(t.Context(), lease, intents.ChainWrite{
		Progress: &watched.Progress{Head: 102, Confirmed: 100, Final: 88},
		Seen:     []intents.Observation{{AccountID: p.owner, TransferID: intent.ID, Transaction: seen}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefund(t *testing.T) {
	t.Parallel()
	ann := newPayer(t)
	intent := ann.record(t, ann.owner, ann.keyID, baseSepoliaID.String(), "inv-1")
	path := "/console/transfers/" + intent.ID.String()
	ann.get(path+"/refund").is(http.StatusConflict, "Nothing to refund")
	ann.confirm(t, intent, transfer.RoleOpen, common.HexToHash("0xab"))
	expire(t, ann.store)
	page := ann.get(ann.get(path).link(path+"/refund")).is(http.StatusOK, "This transaction on Sepolia", "pay 1.5 USDC back", "value 0")
	sent := page.sending()
	if sent.Calls.ChainID != "0xaa36a7" || len(sent.Calls.Calls) != 1 || sent.Calls.Calls[0].Value != "0x0" || len(sent.Allowances) != 0 || page.offers("data-report") {
		t.Errorf("the script is told %+v", sent)
	}
	bob := ann.signedUp(t, "bob@example.com")
	bob.get(path+"/refund").is(http.StatusNotFound, "No such transfer")
	pgtest.Exec(t, ann.store, `INSERT INTO members (account_id, person_id, role, created_at)
		SELECT $1, id, 'viewer', now() FROM accounts WHERE email = 'bob@example.com'`, ann.owner)
	bob.post("/console/accounts/act", "account", ann.owner.String()).leadsTo("/console/accounts?done=acting")
	if page := bob.get(path).is(http.StatusOK, "The order expired unfilled.", "A developer or owner of the account can get the money back"); strings.Contains(page.body, "/refund") {
		t.Error("a viewer's page leads to the refund")
	}
	bob.get(path+"/refund").is(http.StatusForbidden, "Not with your role")
}

// Scripts import each other by the URLs that browsers may keep for ever.
func TestAssets_Imports(t *testing.T) {
	t.Parallel()
	anyone := start(t).browser(t)
	page := anyone.get("/console/sign-in")
	script := attribute(page.find(func(n *html.Node) bool { return n.Data == "script" }), "src")
	seen := map[string]bool{}
	for next := []string{script}; len(next) > 0; next = next[1:] {
		if seen[next[0]] {
			continue
		}
		seen[next[0]] = true
		file := anyone.get(next[0])
		if file.status != http.StatusOK || !strings.Contains(file.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, Cache-Control %q", next[0], file.status, file.header.Get("Cache-Control"))
		}
		if strings.Contains(file.body, `"./`) {
			t.Errorf("%s imports a file by its bare name", next[0])
		}
		for quoted := range strings.SplitSeq(file.body, `"`) {
			if strings.HasPrefix(quoted, "/console/assets/") {
				next = append(next, quoted)
			}
		}
	}
	if len(seen) != 12 {
		t.Errorf("%d scripts: %v", len(seen), seen)
	}
}
