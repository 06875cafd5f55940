package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
)

const zero = "0x0000000000000000000000000000000000000000"

func TestCreateTransfer_Unprocessable(t *testing.T) {
	t.Parallel()
	s := start(t)
	pow := "115792089237316195423570985008687907853269984665640564039457584007913129639936" // 2^256
	at := func(d time.Duration) string { return `,"deadline":"` + time.Now().Add(d).Format(time.RFC3339) + `"` }
	for name, request := range map[string]string{
		"an unknown chain":                        webtest.Body("eip155:404:"+webtest.Alice, "eip155:404:"+webtest.Bob, "5", "eip155:404:"+webtest.Bob, "", "", ""),
		"a chain that is no EVM chain":            webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", "cosmos:hub-4:cosmos1xyz", "", "5", ""),
		"an unknown token":                        webtest.Body(webtest.AliceOnSepolia, "eip155:11155111:"+webtest.Bob, "5", webtest.BobOnSepolia, "", "", ""),
		"an unknown destination token":            webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "eip155:11155111:"+webtest.Alice, "5", ""),
		"source account and token apart":          webtest.Body(webtest.AliceOnSepolia, webtest.BaseUSDC, "5", webtest.BobOnBase, "", "", ""),
		"destination account and token apart":     webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, webtest.SepoliaUSDC, "5", ""),
		"no destination token on another chain":   webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, "", "5", ""),
		"to oneself":                              webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", strings.ToLower(webtest.AliceOnSepolia), "", "", ""),
		"zero":                                    webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "0", webtest.BobOnSepolia, "", "", ""),
		"2^256":                                   webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, pow, webtest.BobOnSepolia, "", "", ""),
		"a huge number":                           webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, strings.Repeat("9", 9000), webtest.BobOnSepolia, "", "", ""),
		"nothing arrives":                         webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, webtest.BaseUSDC, "0", ""),
		"to the zero address":                     webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", "eip155:11155111:"+zero, "", "", ""),
		"from the zero address":                   webtest.Body("eip155:11155111:"+zero, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", ""),
		"to the token":                            webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.SepoliaUSDC, "", "", ""),
		"a swap without its amount":               webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, webtest.SepoliaWETH, "", ""),
		"a bridge without its amount":             webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, webtest.BaseUSDC, "", ""),
		"a transfer that delivers another amount": webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "4", ""),
		"a deadline that has passed":              webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", `,"deadline":"2020-01-01T00:00:00Z"`),
		"a deadline too soon":                     webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", at(50*time.Second)),
		"a deadline too soon for the chain":       webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, webtest.BaseUSDC, "4", at(190*time.Second)),
		"a deadline too late":                     webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", at(7*24*time.Hour+time.Hour)),
		"no settler at the destination":           webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnArbitrum, webtest.ArbitrumUSDC, "4", ""),
		"no settler at the source":                webtest.Body("eip155:421614:"+webtest.Alice, webtest.ArbitrumUSDC, "5", webtest.BobOnSepolia, webtest.SepoliaUSDC, "4", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Example(t, name, "POST", "/v2/transfers", request, webtest.Keyed(uuid.New(), "test")...)
		})
	}
}

func TestCreateTransfer_SwapWithoutSettler(t *testing.T) {
	t.Parallel()
	s := start(t)
	pgtest.Exec(t, s.Store, `INSERT INTO tokens (chain_id, address, symbol, decimals)
		VALUES ('eip155:84532', '0x4200000000000000000000000000000000000006', 'WETH', 18)`)
	if err := s.Live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := webtest.Body("eip155:84532:"+webtest.Alice, webtest.BaseUSDC, "5", webtest.BobOnBase, "eip155:84532:0x4200000000000000000000000000000000000006", "4", "")
	webtest.Same(t, "answer", webtest.Refused(t, 422, "SETTLER_NOT_CONFIGURED",
		"No deployment on eip155:84532 fills orders on its own chain, so no swap can be executed there."),
		s.Call(t, "POST", "/v2/transfers", request, webtest.Keyed(uuid.New(), "test")...))
}

func TestCreateTransfer_NativeNotSupported(t *testing.T) {
	t.Parallel()
	s := start(t)
	pgtest.Exec(t, s.Store, `UPDATE chains SET settlements = jsonb_set(settlements, '{0,native}', 'false') WHERE id = 'eip155:11155111'`)
	if err := s.Live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	account := webtest.Keyed(uuid.New(), "test")
	s.Example(t, "a native input that no deployment takes", "POST", "/v2/transfers", webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnBase, webtest.BaseUSDC, "4", ""), account...)
	if got := s.Call(t, "POST", "/v2/transfers", webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnSepolia, "", "", ""), account...); got.Status != 201 {
		t.Errorf("a transfer, which needs no deployment: %+v", got)
	}
}

// watchOnly makes exactly these chains watched, and the others take intents only if required is not set.
func (s *service) watchOnly(t *testing.T, required bool, chains ...string) {
	t.Helper()
	pgtest.Exec(t, s.Store, `DELETE FROM watched_chains`)
	for _, id := range chains {
		pgtest.Exec(t, s.Store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, head_number, confirmed_block, final_block, read_at)
			VALUES ('`+id+`', 'a', 1, now() + interval '1 hour', 9, 8, 7, now())`)
	}
	refresh := s.Live.Refresh
	if required {
		refresh = s.Live.RequireWatched
	}
	if err := refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A record says whether both chains of its intent are followed now, whenever it was made.
func TestRecord_Watched(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	bridge := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, webtest.BaseUSDC, "4", "")
	_, location, made := s.CreateTransfer(t, bridge, account...)
	if !strings.Contains(made, `"watched":false`) {
		t.Errorf("nobody follows a chain: %s", made)
	}
	watched := func(got webtest.Answer) any { return got.Body.(map[string]any)["watched"] }
	for _, c := range []struct {
		chains []string
		want   bool
	}{
		{[]string{"eip155:11155111"}, false},
		{[]string{"eip155:84532"}, false},
		{[]string{"eip155:11155111", "eip155:84532"}, true},
		{nil, false},
	} {
		s.watchOnly(t, false, c.chains...)
		read := s.Call(t, "GET", location, "", account...)
		created := s.Call(t, "POST", "/v2/transfers", bridge, account...)
		if watched(read) != c.want || watched(created) != c.want {
			t.Errorf("followed are %v: watched is %v, and %v at creation", c.chains, watched(read), watched(created))
		}
	}
}

// Where the operator requires it, no intent and no quote is made on a chain that nobody follows, and what was made before is there as ever.
func TestCreateTransfer_ChainNotWatched(t *testing.T) {
	t.Parallel()
	s := start(t, quoting(t, providertest.Start(t, "solver", network.Test)))
	account := webtest.Keyed(uuid.New(), "test")
	const onSepolia, onBase = "eip155:11155111", "eip155:84532"
	s.watchOnly(t, true, onSepolia, onBase)
	bridge := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, webtest.BaseUSDC, "4", "")
	first := s.Call(t, "POST", "/v2/transfers", bridge, append(account, "Idempotency-Key", "first")...)
	if first.Status != 201 {
		t.Fatalf("both chains are followed: %+v", first)
	}
	quote := s.quote(t, account...)
	for _, c := range []struct{ watched, unwatched, path string }{
		{onSepolia, onBase, "/destination/account"},
		{onBase, onSepolia, "/source/account"},
	} {
		s.watchOnly(t, true, c.watched)
		want := webtest.Refused(t, 422, "CHAIN_NOT_WATCHED", "Nobody follows chain "+c.unwatched+
			" here now, so it takes no intents; GET /v2/chains says which chains are watched.")
		webtest.Same(t, c.path, want, s.Call(t, "POST", "/v2/transfers", bridge, account...))
		webtest.Same(t, c.path+", of a quote", want, s.Call(t, "POST", "/v2/transfers", of(quote, ""), account...))
		webtest.Same(t, c.path+", a quote", want, s.Call(t, "POST", "/v2/quotes", exactInput, account...))
		repeated := s.Call(t, "POST", "/v2/transfers", bridge, append(account, "Idempotency-Key", "first")...)
		if repeated.Status != 201 || repeated.Body.(map[string]any)["id"] != first.Body.(map[string]any)["id"] {
			t.Errorf("a repeat: %+v", repeated)
		}
	}
}

func TestCreateTransfer_Environments(t *testing.T) {
	t.Parallel()
	s := start(t)
	pgtest.Exec(t, s.Store, `UPDATE chains SET settlements = (SELECT settlements FROM chains WHERE id = 'eip155:11155111') WHERE id = 'eip155:1'`)
	pgtest.Exec(t, s.Store, `INSERT INTO tokens (chain_id, address, symbol, decimals)
		VALUES ('eip155:1', '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2', 'WETH', 18)`)
	if err := s.Live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	chainRefused := func(chain int, id, of, key string) webtest.Answer {
		return webtest.Want(t, 403, fmt.Sprintf(`{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","chainId":%d,"keyEnv":%q,
			"message":"Chain %s is a %s chain and this is a %s key; use a %s key."}`, chain, key, id, of, key, of))
	}
	onMainnet := webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "5", webtest.BobOnMainnet, "", "", "")
	for name, c := range map[string]struct {
		key, body string
		want      webtest.Answer
	}{
		"a test key on a live chain": {"test", onMainnet, chainRefused(1, "eip155:1", "live", "test")},
		"a live key on a testnet":    {"live", webtest.TransferBody, chainRefused(11155111, "eip155:11155111", "test", "live")},
		"only the destination": {
			"test", webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnMainnet, webtest.MainnetUSDC, "4", ""),
			chainRefused(1, "eip155:1", "live", "test"),
		},
		"only the destination's token": {
			"test", webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, webtest.MainnetUSDC, "4", ""),
			chainRefused(1, "eip155:1", "live", "test"),
		},
		"only the source's token": {
			"test", webtest.Body(webtest.AliceOnSepolia, webtest.MainnetUSDC, "5", webtest.BobOnSepolia, webtest.SepoliaUSDC, "4", ""),
			chainRefused(1, "eip155:1", "live", "test"),
		},
		"a long chain number": {
			"live", webtest.Body("eip155:99000000001:"+webtest.Alice, webtest.FarUSDC, "5", webtest.BobOnFar, "", "", ""),
			chainRefused(99000000001, "eip155:99000000001", "test", "live"),
		},
	} {
		webtest.Same(t, name, c.want, s.Call(t, "POST", "/v2/transfers", c.body, webtest.Keyed(uuid.New(), c.key)...))
	}
	if got := s.Call(t, "POST", "/v2/transfers", onMainnet, webtest.Keyed(uuid.New(), "live")...); got.Status != 201 {
		t.Errorf("a live key on a live chain: %+v", got)
	}
	onMainnet = webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "5", webtest.BobOnMainnet, "eip155:1:0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", "4", "")
	got := s.Call(t, "POST", "/v2/transfers", onMainnet, webtest.Keyed(uuid.New(), "live")...)
	record, _ := got.Body.(map[string]any)
	order, _ := record["order"].(map[string]any)
	tx, _ := record["tx"].(map[string]any)
	if got.Status != 201 || order["deployment"] != "test" || tx["chainId"] != 1.0 || tx["to"] != order["inputSettler"] {
		t.Errorf("a swap with a live key: %+v", got)
	}
}

// A request broken in several ways gets the earliest refusal of 413, 415, 400, 403, 422; each row corrects one of them.
func TestCreateTransfer_OrderOfChecks(t *testing.T) {
	t.Parallel()
	s := start(t)
	long := strings.Repeat(" ", 16<<10)
	badGrammar := webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "0", webtest.BobOnMainnet, "", "", `,"more":1`)
	badMeaning := webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "0", "eip155:404:"+webtest.Bob, "", "", "")
	badAmount := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "0", "eip155:404:"+webtest.Bob, "", "", "")
	for _, c := range []struct {
		status          int
		body, mediaType string
	}{
		{413, badGrammar + long, "text/plain"},
		{415, badGrammar, "text/plain"},
		{400, badGrammar, "application/json"},
		{403, badMeaning, "application/json"},
		{422, badAmount, "application/json"},
		{201, webtest.TransferBody, "application/json"},
	} {
		got := s.Call(t, "POST", "/v2/transfers", c.body, append(webtest.Keyed(uuid.New(), "test"), "Content-Type", c.mediaType)...)
		if got.Status != c.status {
			t.Errorf("want %d, got %+v", c.status, got)
		}
	}
}
