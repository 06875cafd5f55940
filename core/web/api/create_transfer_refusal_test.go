package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/network"
)

const zero = "0x0000000000000000000000000000000000000000"

func TestCreateTransfer_Unprocessable(t *testing.T) {
	t.Parallel()
	s := start(t)
	pow := "115792089237316195423570985008687907853269984665640564039457584007913129639936" // 2^256
	at := func(d time.Duration) string { return `,"deadline":"` + time.Now().Add(d).Format(time.RFC3339) + `"` }
	for name, request := range map[string]string{
		"an unknown chain":                        body("eip155:404:"+alice, "eip155:404:"+bob, "5", "eip155:404:"+bob, "", "", ""),
		"a chain that is no EVM chain":            body(aliceOnSepolia, sepoliaUSDC, "5", "cosmos:hub-4:cosmos1xyz", "", "5", ""),
		"an unknown token":                        body(aliceOnSepolia, "eip155:11155111:"+bob, "5", bobOnSepolia, "", "", ""),
		"an unknown destination token":            body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "eip155:11155111:"+alice, "5", ""),
		"source account and token apart":          body(aliceOnSepolia, baseUSDC, "5", bobOnBase, "", "", ""),
		"destination account and token apart":     body(aliceOnSepolia, sepoliaUSDC, "5", bobOnBase, sepoliaUSDC, "5", ""),
		"no destination token on another chain":   body(aliceOnSepolia, sepoliaUSDC, "5", bobOnBase, "", "5", ""),
		"to oneself":                              body(aliceOnSepolia, sepoliaUSDC, "5", strings.ToLower(aliceOnSepolia), "", "", ""),
		"zero":                                    body(aliceOnSepolia, sepoliaUSDC, "0", bobOnSepolia, "", "", ""),
		"2^256":                                   body(aliceOnSepolia, sepoliaUSDC, pow, bobOnSepolia, "", "", ""),
		"a huge number":                           body(aliceOnSepolia, sepoliaUSDC, strings.Repeat("9", 9000), bobOnSepolia, "", "", ""),
		"nothing arrives":                         body(aliceOnSepolia, sepoliaUSDC, "5", bobOnBase, baseUSDC, "0", ""),
		"to the zero address":                     body(aliceOnSepolia, sepoliaUSDC, "5", "eip155:11155111:"+zero, "", "", ""),
		"from the zero address":                   body("eip155:11155111:"+zero, sepoliaUSDC, "5", bobOnSepolia, "", "", ""),
		"to the token":                            body(aliceOnSepolia, sepoliaUSDC, "5", sepoliaUSDC, "", "", ""),
		"a swap without its amount":               body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, sepoliaWETH, "", ""),
		"a bridge without its amount":             body(aliceOnSepolia, sepoliaUSDC, "5", bobOnBase, baseUSDC, "", ""),
		"a transfer that delivers another amount": body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "4", ""),
		"a deadline that has passed":              body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "", `,"deadline":"2020-01-01T00:00:00Z"`),
		"a deadline too soon":                     body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "", at(50*time.Second)),
		"a deadline too soon for the chain":       body(aliceOnSepolia, sepoliaUSDC, "5", bobOnBase, baseUSDC, "4", at(190*time.Second)),
		"a deadline too late":                     body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, "", "", at(7*24*time.Hour+time.Hour)),
		"no settler at the destination":           body(aliceOnSepolia, sepoliaUSDC, "5", bobOnArbitrum, arbitrumUSDC, "4", ""),
		"no settler at the source":                body("eip155:421614:"+alice, arbitrumUSDC, "5", bobOnSepolia, sepoliaUSDC, "4", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.example(t, name, "POST", "/v2/transfers", request, keyed(uuid.New(), "test")...)
		})
	}
}

func TestCreateTransfer_SwapWithoutSettler(t *testing.T) {
	t.Parallel()
	s := start(t)
	pgtest.Exec(t, s.store, `INSERT INTO tokens VALUES ('eip155:84532', '0x4200000000000000000000000000000000000006', 'WETH', 18)`)
	if err := s.live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := body("eip155:84532:"+alice, baseUSDC, "5", bobOnBase, "eip155:84532:0x4200000000000000000000000000000000000006", "4", "")
	same(t, "answer", refused(t, 422, "SETTLER_NOT_CONFIGURED",
		"No deployment on eip155:84532 fills orders on its own chain, so no swap can be executed there."),
		s.call(t, "POST", "/v2/transfers", request, keyed(uuid.New(), "test")...))
}

func TestCreateTransfer_NativeNotSupported(t *testing.T) {
	t.Parallel()
	s := start(t)
	pgtest.Exec(t, s.store, `UPDATE chains SET settlements = jsonb_set(settlements, '{0,native}', 'false') WHERE id = 'eip155:11155111'`)
	if err := s.live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	account := keyed(uuid.New(), "test")
	s.example(t, "a native input that no deployment takes", "POST", "/v2/transfers", body(aliceOnSepolia, sepoliaETH, "5", bobOnBase, baseUSDC, "4", ""), account...)
	if got := s.call(t, "POST", "/v2/transfers", body(aliceOnSepolia, sepoliaETH, "5", bobOnSepolia, "", "", ""), account...); got.Status != 201 {
		t.Errorf("a transfer, which needs no deployment: %+v", got)
	}
}

// watchOnly makes exactly these chains watched, and the others take intents only if required is not set.
func (s *service) watchOnly(t *testing.T, required bool, chains ...string) {
	t.Helper()
	pgtest.Exec(t, s.store, `DELETE FROM watched_chains`)
	for _, id := range chains {
		pgtest.Exec(t, s.store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, head_number, confirmed_block, final_block, read_at)
			VALUES ('`+id+`', 'a', 1, now() + interval '1 hour', 9, 8, 7, now())`)
	}
	refresh := s.live.Refresh
	if required {
		refresh = s.live.RequireWatched
	}
	if err := refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A record says whether both chains of its intent are followed now, whenever it was made.
func TestRecord_Watched(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := keyed(uuid.New(), "test")
	bridge := body(aliceOnSepolia, sepoliaUSDC, "5", bobOnBase, baseUSDC, "4", "")
	_, location, made := s.create(t, bridge, account...)
	if !strings.Contains(made, `"watched":false`) {
		t.Errorf("nobody follows a chain: %s", made)
	}
	watched := func(got answer) any { return got.Body.(map[string]any)["watched"] }
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
		read := s.call(t, "GET", location, "", account...)
		created := s.call(t, "POST", "/v2/transfers", bridge, account...)
		if watched(read) != c.want || watched(created) != c.want {
			t.Errorf("followed are %v: watched is %v, and %v at creation", c.chains, watched(read), watched(created))
		}
	}
}

// Where the operator requires it, no intent and no quote is made on a chain that nobody follows, and what was made before is there as ever.
func TestCreateTransfer_ChainNotWatched(t *testing.T) {
	t.Parallel()
	s := start(t, quoting(startSolver(t, "solver", network.Test)))
	account := keyed(uuid.New(), "test")
	const onSepolia, onBase = "eip155:11155111", "eip155:84532"
	s.watchOnly(t, true, onSepolia, onBase)
	bridge := body(aliceOnSepolia, sepoliaUSDC, "5", bobOnBase, baseUSDC, "4", "")
	first := s.call(t, "POST", "/v2/transfers", bridge, append(account, "Idempotency-Key", "first")...)
	if first.Status != 201 {
		t.Fatalf("both chains are followed: %+v", first)
	}
	quote := s.quote(t, account...)
	for _, c := range []struct{ watched, unwatched, path string }{
		{onSepolia, onBase, "/destination/account"},
		{onBase, onSepolia, "/source/account"},
	} {
		s.watchOnly(t, true, c.watched)
		want := refused(t, 422, "CHAIN_NOT_WATCHED", "Nobody follows chain "+c.unwatched+
			" here now, so it takes no intents; GET /v2/chains says which chains are watched.")
		same(t, c.path, want, s.call(t, "POST", "/v2/transfers", bridge, account...))
		same(t, c.path+", of a quote", want, s.call(t, "POST", "/v2/transfers", of(quote, ""), account...))
		same(t, c.path+", a quote", want, s.call(t, "POST", "/v2/quotes", exactInput, account...))
		repeated := s.call(t, "POST", "/v2/transfers", bridge, append(account, "Idempotency-Key", "first")...)
		if repeated.Status != 201 || repeated.Body.(map[string]any)["id"] != first.Body.(map[string]any)["id"] {
			t.Errorf("a repeat: %+v", repeated)
		}
	}
}

func TestCreateTransfer_Environments(t *testing.T) {
	t.Parallel()
	s := start(t)
	pgtest.Exec(t, s.store, `UPDATE chains SET settlements = (SELECT settlements FROM chains WHERE id = 'eip155:11155111') WHERE id = 'eip155:1'`)
	pgtest.Exec(t, s.store, `INSERT INTO tokens VALUES ('eip155:1', '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2', 'WETH', 18)`)
	if err := s.live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	chainRefused := func(chain int, id, of, key string) answer {
		return want(t, 403, fmt.Sprintf(`{"code":"CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT","chainId":%d,"keyEnv":%q,
			"message":"Chain %s is a %s chain and this is a %s key; use a %s key."}`, chain, key, id, of, key, of))
	}
	onMainnet := body(aliceOnMainnet, mainnetUSDC, "5", bobOnMainnet, "", "", "")
	for name, c := range map[string]struct {
		key, body string
		want      answer
	}{
		"a test key on a live chain": {"test", onMainnet, chainRefused(1, "eip155:1", "live", "test")},
		"a live key on a testnet":    {"live", transferBody, chainRefused(11155111, "eip155:11155111", "test", "live")},
		"only the destination": {
			"test", body(aliceOnSepolia, sepoliaUSDC, "5", bobOnMainnet, mainnetUSDC, "4", ""),
			chainRefused(1, "eip155:1", "live", "test"),
		},
		"only the destination's token": {
			"test", body(aliceOnSepolia, sepoliaUSDC, "5", bobOnSepolia, mainnetUSDC, "4", ""),
			chainRefused(1, "eip155:1", "live", "test"),
		},
		"only the source's token": {
			"test", body(aliceOnSepolia, mainnetUSDC, "5", bobOnSepolia, sepoliaUSDC, "4", ""),
			chainRefused(1, "eip155:1", "live", "test"),
		},
		"a long chain number": {
			"live", body("eip155:99000000001:"+alice, farUSDC, "5", bobOnFar, "", "", ""),
			chainRefused(99000000001, "eip155:99000000001", "test", "live"),
		},
	} {
		same(t, name, c.want, s.call(t, "POST", "/v2/transfers", c.body, keyed(uuid.New(), c.key)...))
	}
	if got := s.call(t, "POST", "/v2/transfers", onMainnet, keyed(uuid.New(), "live")...); got.Status != 201 {
		t.Errorf("a live key on a live chain: %+v", got)
	}
	onMainnet = body(aliceOnMainnet, mainnetUSDC, "5", bobOnMainnet, "eip155:1:0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", "4", "")
	got := s.call(t, "POST", "/v2/transfers", onMainnet, keyed(uuid.New(), "live")...)
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
	badGrammar := body(aliceOnMainnet, mainnetUSDC, "0", bobOnMainnet, "", "", `,"more":1`)
	badMeaning := body(aliceOnMainnet, mainnetUSDC, "0", "eip155:404:"+bob, "", "", "")
	badAmount := body(aliceOnSepolia, sepoliaUSDC, "0", "eip155:404:"+bob, "", "", "")
	for _, c := range []struct {
		status          int
		body, mediaType string
	}{
		{413, badGrammar + long, "text/plain"},
		{415, badGrammar, "text/plain"},
		{400, badGrammar, "application/json"},
		{403, badMeaning, "application/json"},
		{422, badAmount, "application/json"},
		{201, transferBody, "application/json"},
	} {
		got := s.call(t, "POST", "/v2/transfers", c.body, append(keyed(uuid.New(), "test"), "Content-Type", c.mediaType)...)
		if got.Status != c.status {
			t.Errorf("want %d, got %+v", c.status, got)
		}
	}
}
