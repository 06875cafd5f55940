package main_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/google/go-cmp/cmp"

	main "intents.internal/deploy/chains"
)

const nativeAsset = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE" // ERC-7528

// The lists for core say what the chains have.
func TestLists(t *testing.T) {
	t.Parallel()
	type settlement struct {
		Scheme, Deployment, InputSettler, OutputSettler, Oracle string
		ClaimPeriod                                             int
		Native, SameChain                                       bool
		Signing                                                 []string
	}
	chains := readList[struct {
		Chains []struct {
			ChainID, Environment, Finality string
			Confirmations, BlockTimeMS     uint32
			Settlements                    []settlement
		}
	}](t, "lists/chains.json").Chains
	if len(chains) != 2 {
		t.Errorf("%d chains", len(chains))
	}
	for _, c := range chains {
		got := []any{
			request[string](t, shared, c.ChainID, "eth_chainId"), c.Environment, c.Finality, c.Confirmations, c.BlockTimeMS, c.Settlements,
			call[uint8](t, shared, c.ChainID, inputSettler, main.InputSettler, "orderStatus", [32]byte{}),
			call[[32]byte](t, shared, c.ChainID, outputSettler, main.OutputSettler, "getFillRecord0", [32]byte{}, [32]byte{}),
			call[common.Address](t, shared, c.ChainID, oracle, main.Oracle, "owner"),
		}
		want := []any{
			fmt.Sprintf("0x%x", chainIDs[c.ChainID]), "test", "depth", uint32(2), uint32(1000),
			[]settlement{{"oif-v1/StandardOrder", "local", inputSettler.Hex(), outputSettler.Hex(), oracle.Hex(), 15, true, true, []string{"erc3009", "permit2"}}},
			uint8(0),
			[32]byte{},
			main.OwnerAddress,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.ChainID, diff)
		}
	}
	tokens := readList[struct {
		Tokens []struct {
			ChainID               uint64
			Address, Name, Symbol string
			Decimals              uint8
			FeeOnTransfer         bool
			ERC3009, EIP2612      *struct{ Name, Version string }
		}
	}](t, "lists/tokens.json").Tokens
	if len(tokens) != 2*6 {
		t.Errorf("%d tokens", len(tokens))
	}
	for _, token := range tokens {
		chain, address := fmt.Sprintf("eip155:%d", token.ChainID), common.HexToAddress(token.Address)
		got := []any{"Ether", "ETH", uint8(18), token.Address}
		if token.Address != nativeAsset {
			got = []any{
				call[string](t, shared, chain, address, main.Token, "name"), call[string](t, shared, chain, address, main.Token, "symbol"),
				call[uint8](t, shared, chain, address, main.Token, "decimals"), address.Hex(),
			}
		}
		if diff := cmp.Diff([]any{token.Name, token.Symbol, token.Decimals, token.Address}, got); diff != "" {
			t.Errorf("%s:%s (-want +got):\n%s", chain, token.Address, diff)
		}
		want := []bool{address == tEURC, address == tEURC, address == tFEE}
		if diff := cmp.Diff(want, []bool{token.ERC3009 != nil, token.EIP2612 != nil, token.FeeOnTransfer}); diff != "" {
			t.Errorf("%s:%s: has ERC-3009, EIP-2612, a fee (-want +got):\n%s", chain, token.Address, diff)
		}
		for _, domain := range []*struct{ Name, Version string }{token.ERC3009, token.EIP2612} {
			if domain == nil {
				continue
			}
			want := domainSeparator(t, apitypes.TypedDataDomain{
				Name: domain.Name, Version: domain.Version, ChainId: math.NewHexOrDecimal256(int64(token.ChainID)), VerifyingContract: token.Address,
			})
			if diff := cmp.Diff(want, call[[32]byte](t, shared, chain, address, main.FiatToken, "DOMAIN_SEPARATOR")); diff != "" {
				t.Errorf("%s:%s: DOMAIN_SEPARATOR (-want +got):\n%s", chain, token.Address, diff)
			}
		}
	}
}

func readList[T any](t *testing.T, name string) (list T) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The mnemonic's first account is as everybody knows it, and each has all that the README says.
func TestDevelopmentAccounts(t *testing.T) {
	t.Parallel()
	got := request[[]common.Address](t, shared, chainA, "eth_accounts")
	if len(got) != 10 || got[0] != common.HexToAddress("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266") ||
		got[9] != common.HexToAddress("0xa0Ee7A142d267C1f36714E4a8F75612F20a79720") {
		t.Errorf("eth_accounts are %s", got)
	}
	idle := got[9]
	for _, chain := range []string{chainA, chainB} {
		got := []string{
			request[*hexutil.Big](t, shared, chain, "eth_getBalance", idle, "latest").ToInt().String(),
			balance(t, shared, chain, tUSDC, idle).String(), balance(t, shared, chain, tWETH, idle).String(),
			balance(t, shared, chain, tFEE, idle).String(), balance(t, shared, chain, tUSDT, idle).String(),
			balance(t, shared, chain, tEURC, idle).String(),
		}
		want := []string{
			"1" + strings.Repeat("0", 4+18), "1" + strings.Repeat("0", 6+6), "1" + strings.Repeat("0", 6+18), "1" + strings.Repeat("0", 6+18),
			"1" + strings.Repeat("0", 6+6), "1" + strings.Repeat("0", 6+6),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", chain, diff)
		}
	}
}

func TestFaucet(t *testing.T) {
	t.Parallel()
	account := common.HexToAddress("0x00000000000000000000000000000000FA0CE700")
	hashes := request[[]common.Hash](t, shared, chainB, "faucet_fund", account)
	got := []string{
		request[*hexutil.Big](t, shared, chainB, "eth_getBalance", account, "latest").ToInt().String(),
		balance(t, shared, chainB, tUSDC, account).String(), balance(t, shared, chainB, tWETH, account).String(),
		balance(t, shared, chainB, tFEE, account).String(), balance(t, shared, chainB, tUSDT, account).String(),
		balance(t, shared, chainB, tEURC, account).String(),
	}
	want := []string{
		"1" + strings.Repeat("0", 19), "1" + strings.Repeat("0", 9), "1" + strings.Repeat("0", 21), "1" + strings.Repeat("0", 21), "1" + strings.Repeat("0", 9),
		"1" + strings.Repeat("0", 9),
	}
	if diff := cmp.Diff(want, got); diff != "" || len(hashes) != 6 {
		t.Errorf("%d transactions, balances (-want +got):\n%s", len(hashes), diff)
	}
}

// A block a second comes without transactions too, and the tags lead to blocks.
func TestBlocks(t *testing.T) {
	t.Parallel()
	began, first := time.Now(), request[hexutil.Uint64](t, shared, chainA, "eth_blockNumber")
	eventually(t, func() error {
		if request[hexutil.Uint64](t, shared, chainA, "eth_blockNumber") < first+3 {
			return errNotYet
		}
		return nil
	})
	if took := time.Since(began); took < 1500*time.Millisecond || took > 15*time.Second {
		t.Errorf("three blocks took %s", took)
	}
	for _, tag := range []string{"safe", "finalized"} {
		if request[*height](t, shared, chainA, "eth_getBlockByNumber", tag, false) == nil {
			t.Errorf("no block is %s", tag)
		}
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	account, message := newAccount(t, 0), hexutil.Bytes("hello")
	personal := request[hexutil.Bytes](t, shared, chainA, "personal_sign", message, account)
	if diff := cmp.Diff(request[hexutil.Bytes](t, shared, chainA, "eth_sign", account, message), personal); diff != "" {
		t.Errorf("personal_sign (-eth_sign +personal_sign):\n%s", diff)
	}
	if signer := signerOf(t, accounts.TextHash(message), personal); signer != account {
		t.Errorf("personal_sign is by %s", signer)
	}
	typed := `{"types":{"EIP712Domain":[{"name":"name","type":"string"}],"Note":[{"name":"text","type":"string"}]},` +
		`"primaryType":"Note","domain":{"name":"tests"},"message":{"text":"hello"}}`
	word := func(text string) []byte { return crypto.Keccak256([]byte(text)) }
	hash := crypto.Keccak256([]byte("\x19\x01"),
		crypto.Keccak256(word("EIP712Domain(string name)"), word("tests")), crypto.Keccak256(word("Note(string text)"), word("hello")))
	for _, data := range []any{json.RawMessage(typed), typed} {
		signature := request[hexutil.Bytes](t, shared, chainA, "eth_signTypedData_v4", account, data)
		if signer := signerOf(t, hash, signature); signer != account {
			t.Errorf("eth_signTypedData_v4 of %T is by %s", data, signer)
		}
	}
}

func signerOf(t *testing.T, hash, signature []byte) common.Address {
	t.Helper()
	signature[64] -= 27
	key, err := crypto.SigToPub(hash, signature)
	if err != nil {
		t.Fatal(err)
	}
	return crypto.PubkeyToAddress(*key)
}

func TestCORS(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{origin: origin, "http://example.com": ""} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, shared.urls[chainA], nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", from)
		r.Header.Set("Access-Control-Request-Method", http.MethodPost)
		r.Header.Set("Access-Control-Request-Headers", "content-type")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s may call: %q, want %q", from, got, want)
		}
	}
}

// A page of a name that leads to this address is refused, as the README says (DNS rebinding).
func TestHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]int{"localhost:8545": http.StatusOK, "192.0.2.1:8545": http.StatusOK, "chains.example:8545": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shared.urls[chainA], strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", host, response.StatusCode, want)
		}
	}
}

// A killed program goes on where it was: with its blocks, and with balances.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir)
	from, to := newAccount(t, 0), newAccount(t, 1)
	mined(t, p, chainB, send(t, p, chainB, from, tUSDC, pack(t, main.Token, "transfer", to, big.NewInt(5e6))))
	had := balance(t, p, chainB, tUSDC, to)
	before := request[hexutil.Uint64](t, p, chainB, "eth_blockNumber")
	eventually(t, func() error { // the newest block may be lost
		if request[hexutil.Uint64](t, p, chainB, "eth_blockNumber") < before+2 {
			return errNotYet
		}
		return nil
	})
	kept := request[*height](t, p, chainB, "eth_getBlockByNumber", before+1, false)
	p.kill()
	p = start(t, dir)
	if diff := cmp.Diff(kept, request[*height](t, p, chainB, "eth_getBlockByNumber", before+1, false)); diff != "" {
		t.Errorf("a block before the newest (-before +after):\n%s", diff)
	}
	if got := balance(t, p, chainB, tUSDC, to); got.Cmp(had) != 0 {
		t.Errorf("the balance is %s, and was %s", got, had)
	}
}

// tFEE burns a hundredth of a transfer, and an allowance of tUSDT is reset before it is changed.
func TestTokens(t *testing.T) {
	t.Parallel()
	from, to := newAccount(t, 2), common.HexToAddress("0x00000000000000000000000000000000000000FE")
	mined(t, shared, chainA, send(t, shared, chainA, from, tFEE, pack(t, main.Token, "transfer", to, big.NewInt(1000))))
	if got := balance(t, shared, chainA, tFEE, to); got.Int64() != 990 {
		t.Errorf("%s of 1000 arrive", got)
	}
	approve := func(amount int64) map[string]any {
		return map[string]any{"from": from, "to": tUSDT, "data": pack(t, main.Token, "approve", to, big.NewInt(amount))}
	}
	for _, amount := range []int64{2, 0, 3} {
		mined(t, shared, chainA, request[common.Hash](t, shared, chainA, "eth_sendTransaction", approve(amount)))
	}
	if err := shared.chains[chainA].CallContext(t.Context(), nil, "eth_call", approve(4), "latest"); err == nil {
		t.Error("an allowance was changed without a reset")
	}
}
