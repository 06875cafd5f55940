package e2e_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// preflight reads whether a check of an intent's transaction holds, and the gas, empty where the transaction would fail.
func (c *chainClient) preflight(t *testing.T, id, check string) (ok bool, gas string) {
	t.Helper()
	answer := expect[struct {
		OK     bool
		Checks []struct {
			Name, Detail string
			OK           bool
		}
		Gas *string
	}](t, c.do(http.MethodGet, "/v2/transfers/"+id+"/preflight", nil), http.StatusOK)
	for _, each := range answer.Checks {
		if each.Name == check && each.OK == answer.OK { // the one that decides
			if answer.Gas != nil {
				gas = *answer.Gas
			}
			return answer.OK, gas
		}
	}
	t.Fatalf("preflight %+v, want that %s decides", answer, check)
	return false, ""
}

// The simulation of a transaction agrees with what becomes of it.
func simulates(t *testing.T, s *chainStack, from, to *evmChain) {
	t.Helper()
	client := s.client(t)
	poor := client.create(t, body(from.at(from.account(t)), from.at(from.token.Address), strconv.Itoa(tokens+1), from.at(common.HexToAddress(recipient)), "", ""))
	if ok, gas := client.preflight(t, poor.ID, "balance"); ok || gas != "" {
		t.Errorf("more than the account has: %v, gas %s", ok, gas)
	}
	r := client.create(t, body(from.at(from.account(t)), from.at(from.token.Address), sent, to.at(common.HexToAddress(recipient)), to.at(to.token.Address), received))
	if ok, gas := client.preflight(t, r.ID, "allowance"); ok || gas != "" {
		t.Errorf("without the allowance: %v, gas %s", ok, gas)
	}
	approve, open := r.Tx.Calls.Calls[0], r.Tx.Calls.Calls[1]
	approve.From, open.From = r.Tx.From, r.Tx.From
	from.Execute(t, approve)
	ok, gas := client.preflight(t, r.ID, "simulation")
	limit, err := strconv.ParseUint(gas, 10, 64)
	if !ok || err != nil {
		t.Fatalf("with the allowance: %v, gas %q", ok, gas)
	}
	// The other orders that come and go at the settler change what a transaction costs, so wallets add a margin.
	open.Gas = hexutil.Uint64(limit + limit/4)
	from.opened(t, r, from.Execute(t, open))
	from.Mine(t, depth)
	client.awaitConfirmed(t, r.ID)
	expect[failure](t, client.do(http.MethodGet, "/v2/transfers/"+r.ID+"/preflight", nil), http.StatusConflict)
}

// Without nodes nothing can be asked of a chain, and the record stands as the client leaves it.
func TestChains_NotWatched(t *testing.T) {
	t.Parallel()
	client := apiClient(t, freshKey(t))
	r := expect[chainRecord](t, client.do(http.MethodPost, "/v2/transfers", body(on(11155111, alice), on(11155111, usdc), sent, on(11155111, bob), "", "")), 201)
	if got := expect[failure](t, client.do(http.MethodGet, "/v2/transfers/"+r.ID+"/preflight", nil), 503); got.Code != "CHAIN_NOT_WATCHED" {
		t.Errorf("preflight: %+v", got)
	}
	if got := expect[failure](t, client.do(http.MethodGet, "/v2/transfers/"+r.ID+"/refund", nil), 409); got.Code != "NOT_REFUNDABLE" {
		t.Errorf("refund: %+v", got)
	}
}
