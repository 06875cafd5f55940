package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

// addChain is what the script of a page may ask a wallet to add (EIP-3085), as JSON.
func (a *answer) addChain() string {
	a.t.Helper()
	n := a.find(func(n *html.Node) bool { return attribute(n, "data-send") != "" })
	var told struct{ AddChain json.RawMessage }
	if err := json.Unmarshal([]byte(attribute(n, "data-send")), &told); err != nil {
		a.t.Fatal(err)
	}
	return string(told.AddChain)
}

// A wallet can be offered the chain where the registry has public URLs of it.
func TestSendView_AddChain(t *testing.T) {
	t.Parallel()
	var live *registry.LiveRegistry
	s := startWith(t, pgtest.New(t), func(c *intents.Config) { live = c.Registry })
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	path := "/console/transfers/" + s.record(t, s.ann(t).ID, keyID, sepoliaID.String(), "inv-1").ID.String()
	for _, step := range []struct{ set, want string }{
		{"rpc_urls = NULL", "null"},
		{
			"rpc_urls = ARRAY['https://rpc.example.org/v1', 'https://other.example.org'], currency_name = 'Sepolia Ether', explorer = 'http://localhost'",
			`{"chainId":"0xaa36a7","chainName":"Sepolia","nativeCurrency":{"name":"Sepolia Ether","symbol":"ETH","decimals":18},` +
				`"rpcUrls":["https://rpc.example.org/v1","https://other.example.org"]}`,
		},
		{
			"rpc_urls = ARRAY['https://other.example.org'], currency_name = '', explorer = 'https://explorer.example.org'",
			`{"chainId":"0xaa36a7","chainName":"Sepolia","nativeCurrency":{"name":"ETH","symbol":"ETH","decimals":18},"rpcUrls":["https://other.example.org"],` +
				`"blockExplorerUrls":["https://explorer.example.org"]}`,
		},
	} {
		pgtest.Exec(t, s.store, "UPDATE chains SET "+step.set+" WHERE id = '"+sepoliaID.String()+"'")
		if err := live.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, ann.get(path).is(http.StatusOK).addChain()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.set, diff)
		}
	}
}

// The script can ask for the allowance, and reset it with the call of the API's transaction.
func TestSendView_Allowances(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	path := "/console/transfers/" + s.record(t, s.ann(t).ID, keyID, baseSepoliaID.String(), "inv-1").ID.String()
	page := ann.get(path).is(http.StatusOK, "reset it first with the data")
	const settler = "0000000000000000000000000000010011155111"
	owner, spender := strings.Repeat("0", 24)+strings.ToLower(alice[2:]), strings.Repeat("0", 24)+settler
	var want sending
	want.Allowances = append(want.Allowances, allowance{})
	want.Allowances[0].Query.To, want.Allowances[0].Query.Data = usdc.Hex(), "0xdd62ed3e"+owner+spender
	want.Allowances[0].Amount = "0x16e360"
	want.Allowances[0].Reset.To, want.Allowances[0].Reset.Value, want.Allowances[0].Reset.Data = usdc.Hex(), "0x0", "0x095ea7b3"+spender+strings.Repeat("0", 64)
	if diff := cmp.Diff(want.Allowances, page.sending().Allowances); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The page of an intent looks for news where there may be some.
func TestShowTransfer_Refresh(t *testing.T) {
	t.Parallel()
	ann := newPayer(t)
	const failed = "status = 'failed', failure = 'TX_REVERTED'"
	for _, c := range []struct{ to, set, known, want string }{
		{sepolia, "status = 'created'", "", "2"},
		{sepolia, "status = 'submitted', hash = '0x1'", "", "2"},
		{sepolia, "status = 'confirmed', hash = '0x1'", "", ""},
		{baseSepolia, "status = 'confirmed', hash = '0x1'", "", "2"},
		{baseSepolia, "status = 'filled', hash = '0x1'", "", ""},
		{baseSepolia, "status = 'refunded', hash = '0x1'", "", ""},
		{sepolia, "status = 'cancelled'", "", ""},
		{sepolia, "status = 'expired'", "", ""},
		{sepolia, "status = 'expired', hash = '0x1'", "dropped", "30"},
		{baseSepolia, "status = 'expired'", "", "30"},
		{sepolia, failed + ", hash = '0x1'", "replaced", "30"},
		{baseSepolia, failed + ", hash = '0x1'", "replaced", "30"},
	} {
		id := ann.record(t, ann.owner, ann.keyID, c.to, "inv-1").ID.String()
		pgtest.Exec(t, ann.store, "UPDATE transfers SET "+c.set+" WHERE id = '"+id+"'")
		if c.known != "" {
			pgtest.Exec(t, ann.store, `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, seen_at)
				VALUES ($1, $2, $3, sha256('hash'), 'send', $4, true, now())`, ann.owner, id, sepolia, c.known)
		}
		page := ann.get("/console/transfers/" + id).is(http.StatusOK)
		state := page.find(func(n *html.Node) bool { return attribute(n, "data-live") == "state" })
		if got := attribute(state, "data-refresh"); got != c.want {
			t.Errorf("to %s, %s, known %q: refreshed every %q seconds, want %q", c.to, c.set, c.known, got, c.want)
		}
	}
}

// The page says why an intent failed, with what was expected and found, and so does its timeline.
func TestShowTransfer_Failure(t *testing.T) {
	t.Parallel()
	ann := newPayer(t)
	intent := ann.record(t, ann.owner, ann.keyID, sepoliaID.String(), "inv-1")
	path, sent, other := "/console/transfers/"+intent.ID.String(), common.HexToHash("0xab").Hex(), common.HexToHash("0xcd").Hex()
	ann.post(path+"/transaction", "hash", sent).leadsTo(path + "?done=reported")
	ann.observe(t, intent, transfer.Transaction{Role: transfer.RoleSend, Hash: common.HexToHash(sent), State: transfer.Replaced, Found: other})
	message := "The transaction " + sent + " on eip155:11155111 was replaced: " + other + " used its nonce and does not carry out the intent."
	page := ann.get(path).is(http.StatusOK, "TX_REPLACED "+message, "Expected "+sent, "Found "+other)
	if n := strings.Count(page.text(), message); n != 2 {
		t.Errorf("the sentence is there %d times, not in the facts and the timeline:\n%s", n, page.text())
	}
}
