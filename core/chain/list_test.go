package chain_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/chain"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

func TestReadList(t *testing.T) {
	t.Parallel()
	const currency = `"nativeCurrency":{"name":"Ether","symbol":"ETH","decimals":18}`
	const settler = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
	ether := chain.Currency{Name: "Ether", Symbol: "ETH", Decimals: 18}
	rows := []struct {
		row    string
		want   *chain.Entry
		reason string
	}{
		{
			row: `{"chainId":"eip155:1","name":"Ethereum","environment":"live",` + currency + `}`,
			want: &chain.Entry{KeepSettler: true, Chain: chain.Chain{
				ID: caip.EIP155Chain(1), Name: "Ethereum", Environment: network.Live, NativeCurrency: ether, Domain: 1,
			}},
		},
		{
			row: `{"chainId":"eip155:5","name":"A","environment":"test",` + currency + `,"domain":77,"settler":{"address":"` + strings.ToLower(settler) + `","sameChain":true}}`,
			want: &chain.Entry{Chain: chain.Chain{
				ID: caip.EIP155Chain(5), Name: "A", Environment: network.Test, NativeCurrency: ether, Domain: 77,
				Settler: &chain.Settler{Address: settler, SameChain: true},
			}},
		},
		{
			row: `{"chainId":"eip155:6","name":"B","environment":"test",` + currency + `,"settler":null}`,
			want: &chain.Entry{Chain: chain.Chain{
				ID: caip.EIP155Chain(6), Name: "B", Environment: network.Test, NativeCurrency: ether, Domain: 6,
			}},
		},
		{row: `7`, reason: "not a chain"},
		{row: `{"chainId":"eip155:1","name":"Again","environment":"live",` + currency + `}`, reason: "chain eip155:1 stands earlier in the same list"},
		{row: `{"chainId":"1","name":"C","environment":"live",` + currency + `}`, reason: "chainId must be a CAIP-2 chain id"},
		{row: `{"chainId":"eip155:9","name":"C",` + currency + `}`, reason: `environment must be "test" or "live"`},
		{row: `{"chainId":"eip155:9","name":"","environment":"live",` + currency + `}`, reason: "name must have"},
		{row: `{"chainId":"eip155:9","name":"C","environment":"live"}`, reason: "nativeCurrency.decimals is required"},
		{row: `{"chainId":"cosmos:hub-3","name":"C","environment":"live",` + currency + `}`, reason: "namespace cosmos is not supported"},
		{row: `{"chainId":"eip155:4294967296","name":"C","environment":"live",` + currency + `}`, reason: chain.ErrNoDomain.Error()},
		{row: `{"chainId":"eip155:9","name":"C","environment":"live",` + currency + `,"settler":{"address":"0x1"}}`, reason: "settler.address must be"},
		{row: `{"chainId":"eip155:9","name":"C","environment":"live",` + currency + `,"domain":4294967296}`, reason: "not a chain"},
	}
	var given []string
	var want []chain.Entry
	reasons := map[int]string{}
	for i, r := range rows {
		given = append(given, r.row)
		if r.want != nil {
			want = append(want, *r.want)
		} else {
			reasons[i] = r.reason
		}
	}
	list, err := chain.ReadList(strings.NewReader(`{"chains":[` + strings.Join(given, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list.Chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	for _, refused := range list.Refused {
		if reason, ok := reasons[refused.Row]; !ok || !strings.Contains(refused.Reason, reason) {
			t.Errorf("row %d refused with %q, want %q", refused.Row, refused.Reason, reason)
		}
		delete(reasons, refused.Row)
	}
	if len(reasons) > 0 {
		t.Errorf("not refused: %v", reasons)
	}
}

func TestReadListRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for _, file := range []string{``, `x`, `[]`, `{}`, `{"chains":{}}`, `{"chains":[]}`} {
		if _, err := chain.ReadList(strings.NewReader(file)); err == nil {
			t.Errorf("took %q for a chain list", file)
		}
	}
}

// The list that ships has no row that would be refused and both environments.
func TestDefaultList(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../deploy/data/chains.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := chain.ReadList(file)
	if err != nil || len(list.Refused) > 0 {
		t.Fatalf("%v, refused %v", err, list.Refused)
	}
	count := map[network.Environment]int{}
	for _, entry := range list.Chains {
		count[entry.Environment]++
		if entry.Settler != nil {
			t.Errorf("%s ships a settler", entry.ID)
		}
	}
	if count[network.Test] < 8 || count[network.Live] < 15 {
		t.Errorf("chains by environment: %v", count)
	}
}
