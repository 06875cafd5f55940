package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/caip"
)

const (
	newTransferPath = "/console/transfers/new"

	sepolia     = "eip155:11155111"
	baseSepolia = "eip155:84532"

	sepoliaUSDC     = sepolia + ":0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	sepoliaWETH     = sepolia + ":0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"
	baseSepoliaUSDC = baseSepolia + ":0x036CbD53842c5426634e7929541eC2318f3dCF7e"
)

// payment are the fields of a transfer of 1.5 USDC on Sepolia with some of them changed, as names and values in turn.
func payment(keyID string, change ...string) []string {
	fields := []string{
		"environment", "test", "key", keyID, "sourceChain", sepolia, "sourceAccount", alice, "sourceToken", sepoliaUSDC, "sourceAmount", "1.5",
		"destinationChain", "", "destinationAccount", bob, "destinationToken", "", "destinationAmount", "", "deadline", "3600", "reference", "", "signing", "",
	}
	for i := 0; i < len(change); i += 2 {
		fields[slices.Index(fields, change[i])+1] = change[i+1]
	}
	return fields
}

// confirm sends the form and returns what the button of the next page sends.
func (b *browser) confirm(fields []string, says ...string) (record []string) {
	b.t.Helper()
	page := b.post(newTransferPath+"/confirm", fields...).is(http.StatusOK, append(says, "Nothing is recorded yet.")...)
	for n := range page.form(newTransferPath + "/record").Descendants() {
		if n.Data == "input" {
			record = append(record, attribute(n, "name"), attribute(n, "value"))
		}
	}
	return record
}

// The form marks the chains that nobody follows, and the confirmation names those of the intent, which is recorded all the same.
func TestNewTransfer_Unwatched(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	bridge := payment(keyID, "destinationChain", baseSepolia, "destinationToken", baseSepoliaUSDC, "destinationAmount", "1")
	ann.get(newTransferPath).is(http.StatusOK, "Sepolia (not watched now)", "Base Sepolia (not watched now)")
	ann.confirm(bridge, "This service does not watch Sepolia and Base Sepolia now")
	s.watch(t, caip.EIP155Chain(11155111))
	if page := ann.get(newTransferPath); strings.Count(page.text(), "Sepolia (not watched now)") != 4 { // Arbitrum's and Base's, twice
		t.Errorf("Sepolia is followed: %s", page.text())
	}
	ann.confirm(bridge, "This service does not watch Base Sepolia now")
	page := ann.post(newTransferPath+"/confirm", payment(keyID)...).is(http.StatusOK, "It is a transfer")
	if strings.Contains(page.text(), "does not watch") {
		t.Errorf("its chain is followed: %s", page.text())
	}
	if err := s.live.RequireWatched(t.Context()); err != nil {
		t.Fatal(err)
	}
	ann.post(newTransferPath+"/confirm", bridge...).is(http.StatusUnprocessableEntity, "Nobody follows chain eip155:84532 here now, so it takes no intents")
}

// Each kind of intent, from the link on the list to its page.
func TestNewTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	if link := ann.get("/console/transfers").link(newTransferPath); link != newTransferPath {
		t.Errorf("the list links to %q", link)
	}
	ann.get(newTransferPath).is(http.StatusOK, "You have no enabled test key.", "Make one first")
	keyID, _ := ann.makeKey("mover")
	first := ann.get(newTransferPath).is(http.StatusOK, "From chain", "Sepolia", "Continue")
	if strings.Contains(first.text(), "Ethereum") || strings.Contains(first.text(), "USDC") {
		t.Errorf("the first step shows live chains or tokens:\n%s", first.text())
	}
	ann.get(newTransferPath+"?environment=live").is(http.StatusOK, "You have no enabled live key.")
	second := ann.get(newTransferPath+"?sourceChain="+url.QueryEscape(sepolia)).is(http.StatusOK,
		"From Sepolia", "To Sepolia", "ETH (the chain's own coin)", "USDC (0x1c7D4B…7238)", "The same token", "1 hour from now", "mover")
	option := second.find(func(n *html.Node) bool { return attribute(n, "value") == sepoliaUSDC })
	if symbol, decimals := attribute(option, "data-symbol"), attribute(option, "data-decimals"); symbol != "USDC" || decimals != "6" {
		t.Errorf("the script is told that %s has %s decimals", symbol, decimals)
	}

	for kind, c := range map[string]struct {
		fields []string
		says   []string
	}{
		"transfer": {payment(keyID, "reference", "<i>inv-1</i>"), []string{"It is a transfer", "1.5 USDC", "1500000", "<i>inv-1</i>", "mover", "Test"}},
		"swap": {
			payment(keyID, "sourceToken", sepolia+":0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE", "sourceAmount", "0.000000000000000001 eth", "destinationToken", sepoliaWETH, "destinationAmount", ".5"),
			[]string{"It is a swap", "0.000000000000000001 ETH", "Smallest units 1 ", "To, at least", "0.5 WETH", "500000000000000000"},
		},
		"bridge": {
			payment(keyID, "sourceAccount", sepolia+":"+alice, "sourceAmount", "115792089237316195423570985008687907853269984665640564039457584007913129.639935", "destinationChain", baseSepolia, "destinationToken", baseSepoliaUSDC, "destinationAmount", "1.490", "deadline", "604800"),
			[]string{"It is a bridge", "Base Sepolia", "115792089237316195423570985008687907853269984665640564039457584007913129639935", "1.49 USDC", "1490000", "If nobody fills it can be refunded on Sepolia after", "0x0000000000000000000000000000010011155111 of test"},
		},
	} {
		record := ann.confirm(c.fields, append(c.says, "Record this "+kind+"?")...)
		if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers WHERE type = '"+kind+"'"); n != 0 {
			t.Errorf("%s: %d are stored before it is confirmed", kind, n)
		}
		recorded := ann.post(newTransferPath+"/record", record...)
		page := recorded.header.Get("Location")
		recorded.leadsTo(page)
		ann.get(page).is(http.StatusOK, "The intent is recorded.", c.says[1], "mover", "created")
		if got := pgtest.LookUp[string](t, s.store, "SELECT key_id::text FROM transfers WHERE type = '"+kind+"'"); got != keyID {
			t.Errorf("%s: recorded with the key %s, want %s", kind, got, keyID)
		}
	}
}

// A form with a fault comes back with what was typed and says beside each field what the API would say of it.
func TestNewTransfer_Refused(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	disabled, _ := ann.makeKey("disabled")
	ann.post("/console/keys/" + disabled + "/disable")
	long := strings.Repeat("x", 129)
	zero := "0x0000000000000000000000000000000000000000"
	for _, c := range []struct {
		change       []string
		status       int
		field, wants string
	}{
		{[]string{"key", disabled}, 400, "key", "Choose one of your enabled test keys."},
		{[]string{"key", ""}, 400, "key", "Choose one of your enabled test keys."},
		{[]string{"sourceChain", ""}, 400, "sourceChain", "Choose the chain that the transfer starts on."},
		{[]string{"sourceChain", "eip155:1"}, 400, "sourceChain", "Choose one of the test chains."},
		{[]string{"destinationChain", "sepolia"}, 400, "destinationChain", "Choose one of the test chains."},
		{[]string{"sourceAccount", ""}, 400, "sourceAccount", "The account that sends is required."},
		{[]string{"sourceAccount", "0x12"}, 400, "sourceAccount", "The account that sends: must be an EVM address: 0x and 40 hexadecimal digits."},
		{[]string{"destinationAccount", strings.Replace(bob, "C5", "c5", 1)}, 400, "destinationAccount", "The account that receives: the address has a wrong EIP-55 checksum; copy it again or write it all in lower case."},
		{[]string{"destinationAccount", zero}, 422, "destinationAccount", "The destination account is the zero address; what is sent there is lost."},
		{[]string{"sourceToken", ""}, 400, "sourceToken", "Choose one of the tokens."},
		{[]string{"sourceToken", baseSepoliaUSDC}, 422, "sourceToken", "The source account is on eip155:11155111 but its token on eip155:84532; both must be on one chain."},
		{[]string{"sourceAmount", "1.5 WETH"}, 400, "sourceAmount", "The amount must be a number of USDC such as 1.5, in digits with at most one point."},
		{[]string{"sourceAmount", "1.2.3"}, 400, "sourceAmount", "The amount must be a number of USDC such as 1.5, in digits with at most one point."},
		{[]string{"sourceAmount", "1.0000001"}, 400, "sourceAmount", "The amount has more decimal places than the 6 of USDC."},
		{[]string{"sourceAmount", "0.0"}, 422, "sourceAmount", "The source amount must be between 1 and 2^256-1 of the token's smallest unit."},
		{[]string{"destinationAmount", "1.4"}, 422, "destinationAmount", "A transfer delivers what it sends: leave destination.amount out or make it equal to source.amount."},
		{[]string{"destinationAmount", "1.4x"}, 400, "destinationAmount", "The least amount out must be a number of USDC such as 1.5, in digits with at most one point."},
		{[]string{"destinationChain", "eip155:421614", "destinationToken", "eip155:421614:0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", "destinationAmount", "1"}, 422, "", "No settlement is configured on eip155:421614, so no bridge can be executed there."},
		{[]string{"destinationChain", baseSepolia, "destinationToken", baseSepoliaUSDC, "destinationAmount", "1", "deadline", "120"}, 422, "deadline", "The deadline of a bridge from eip155:11155111 must be 204 seconds to 7 days from now."},
		{[]string{"deadline", "59"}, 400, "deadline", "Choose one of the deadlines."},
		{[]string{"reference", long}, 400, "reference", "Reference: must have 1 to 128 characters."},
		{[]string{"reference", "a\x00"}, 400, "reference", "Reference holds characters that cannot be stored."},
	} {
		a := ann.post(newTransferPath+"/confirm", payment(keyID, c.change...)...).is(c.status, c.wants)
		if c.field == "" {
			a.alerts(c.wants)
		} else {
			a.tied(c.field, c.wants)
		}
		typed := a.find(func(n *html.Node) bool { return attribute(n, "id") == "sourceAmount" })
		if want := payment(keyID, c.change...); typed != nil && attribute(typed, "value") != want[slices.Index(want, "sourceAmount")+1] {
			t.Errorf("%v: the form has the amount %q", c.change, attribute(typed, "value"))
		}
	}
	ann.post(newTransferPath+"/confirm", payment(keyID, "environment", "prod")...).is(http.StatusBadRequest, "Not this page's form")
	ann.post(newTransferPath+"/confirm", append(payment(keyID), "formToken", "x")...).is(http.StatusBadRequest, "has a field that the page does not have")
	ann.get(newTransferPath+"?sourceChain=eip155%3A1").is(http.StatusBadRequest).tied("sourceChain", "Choose one of the test chains.")
	ann.get(newTransferPath+"?environment=prod").is(http.StatusBadRequest, "Not this page's form")
	ann.get(newTransferPath+"?what=ever").is(http.StatusBadRequest, "has a field that the page does not have")
	ann.get(newTransferPath + "/confirm").leadsTo(newTransferPath)
	ann.get(newTransferPath + "/record").leadsTo(newTransferPath)
	s.browser(t).get(newTransferPath).leadsTo("/console/sign-in?next=%2Fconsole%2Ftransfers%2Fnew")
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers"); n != 0 {
		t.Errorf("%d intents are stored", n)
	}
}

// What is recorded is what was confirmed: copies of the form make one intent, another chosen time or registry makes no other one.
func TestRecordTransfer_Once(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	keyID, _ := ann.makeKey("mover")
	record := ann.confirm(payment(keyID, "deadline", "120"))
	pgtest.Exec(t, s.store, "UPDATE tokens SET decimals = 8 WHERE symbol = 'USDC'")
	ann.post(newTransferPath+"/record", record...)
	id := pgtest.LookUp[string](t, s.store, "SELECT id::text FROM transfers")
	if amount := pgtest.LookUp[string](t, s.store, "SELECT source_amount::text FROM transfers"); amount != "1500000" {
		t.Errorf("%s units are recorded, and 1500000 were shown", amount)
	}

	t.Log("the same form is answered alike once its deadline is too near for a new one, and with other values not at all")
	pgtest.Exec(t, s.store, "DELETE FROM tokens WHERE symbol = 'USDC'")
	ann.post(newTransferPath+"/record", record...).leadsTo("/console/transfers/" + id + "?done=recorded")
	other := slices.Clone(record)
	n := slices.Index(other, "request") + 1
	other[n] = strings.Replace(other[n], "1500000", "1500001", 1)
	ann.post(newTransferPath+"/record", other...).is(http.StatusUnprocessableEntity).alerts("This form was sent already, with other values.")

	t.Log("another confirmation is another intent")
	fields := payment(keyID, "sourceToken", sepoliaWETH)
	ann.post(newTransferPath+"/record", ann.confirm(fields)...)
	ann.post(newTransferPath+"/record", ann.confirm(fields)...)
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers"); n != 3 {
		t.Errorf("%d intents, want 3", n)
	}
}

// What was confirmed is checked again when it is recorded.
func TestRecordTransfer_Refused(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, ben := s.signedUp(t, "ann@example.com"), s.signedUp(t, "ben@example.com")
	keyID, _ := ann.makeKey("mover")
	record := ann.confirm(payment(keyID))
	with := func(name, value string) []string {
		changed := slices.Clone(record)
		changed[slices.Index(changed, name)+1] = value
		return changed
	}
	request := record[slices.Index(record, "request")+1]
	late := time.Now().UTC().Add(59 * time.Second).Format(time.RFC3339)
	_, after, _ := strings.Cut(request, `"deadline":"`)
	deadline, _, _ := strings.Cut(after, `"`)
	ann.post(newTransferPath+"/record", with("request", strings.Replace(request, deadline, late, 1))...).is(http.StatusUnprocessableEntity).
		tied("deadline", "The deadline of a transfer from eip155:11155111 must be 60 seconds to 7 days from now.")
	live := strings.ReplaceAll(strings.ReplaceAll(request, sepoliaUSDC, "eip155:1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"), sepolia, "eip155:1")
	ann.post(newTransferPath+"/record", with("request", live)...).is(http.StatusForbidden).alerts("Chain eip155:1 is a live chain and this is a test key; use a live key.")
	ann.post(newTransferPath+"/record", with("request", "{}")...).is(http.StatusBadRequest).alerts("is required")
	ann.post(newTransferPath+"/record", with("formToken", "short")...).is(http.StatusBadRequest, "Not this page's form")
	ann.post(newTransferPath+"/record", with("environment", "live")...).is(http.StatusBadRequest).alerts("Choose one of your enabled live keys.")
	ben.post(newTransferPath+"/record", record...).is(http.StatusBadRequest).alerts("Choose one of your enabled test keys.")
	ann.post("/console/keys/" + keyID + "/disable")
	ann.post(newTransferPath+"/record", record...).is(http.StatusBadRequest).alerts("Choose one of your enabled test keys.")
	if n := pgtest.LookUp[int](t, s.store, "SELECT count(*) FROM transfers"); n != 0 {
		t.Errorf("%d intents are stored", n)
	}
	ann.post("/console/keys/" + keyID + "/enable")
	if a := ann.post(newTransferPath+"/record", record...); a.status != http.StatusSeeOther { // nothing of it was used up
		t.Errorf("%d %s", a.status, a.text())
	}
}
