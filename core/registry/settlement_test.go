package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/pkg/wire"
)

// The contracts of settled.
const (
	inputSettler  = "0x00fC00edbe7C003b006f870068c548940000223e"
	outputSettler = "0x75220B7600c300005038432a0000f308e0000068"
	oracle        = "0x008C3800F3Ad9b3B662d002E90Cc00000000eE17"
)

// settlement is the JSON of settled with further members.
func settlementJSON(more string) string {
	return `{"scheme":"oif-v1/StandardOrder","deployment":"a","inputSettler":"` + inputSettler + `","outputSettler":"` + outputSettler +
		`","oracle":"` + oracle + `"` + more + `}`
}

// settled has the defaults of what settlement leaves out.
var settled = registry.Settlement{
	Scheme: registry.StandardOrder, Deployment: "a", InputSettler: inputSettler, OutputSettler: outputSettler, Oracle: oracle,
	ClaimPeriod: 14_400, SameChain: true, OutputOracle: registry.DestinationOracle,
}

// readSettlements reads a chain with these settlements. The reason is that of a refusal.
func readSettlements(t *testing.T, text string) (settlements []registry.Settlement, reason string) {
	t.Helper()
	list, err := registry.ReadChainList(strings.NewReader(`{"chains":[{"chainId":"eip155:1","name":"A","environment":"live",` +
		`"nativeCurrency":{"symbol":"ETH","decimals":18},"settlements":` + text + `}]}`))
	switch {
	case err != nil:
		t.Fatalf("%s: %v", text, err)
	case len(list.Refused) == 1:
		return nil, list.Refused[0].Reason
	}
	return list.Chains[0].Settlements, ""
}

func TestReadList_Settlements(t *testing.T) {
	t.Parallel()
	with := func(change func(*registry.Settlement)) registry.Settlement {
		s := settled
		change(&s)
		return s
	}
	replaced := func(old, replacement string) string { return strings.Replace(settlementJSON(""), old, replacement, 1) }
	many, first := []string{}, []registry.Settlement{}
	for n := range registry.MaxSettlements {
		name := fmt.Sprintf("v%d", n)
		many = append(many, replaced(`"a"`, `"`+name+`"`))
		first = append(first, with(func(s *registry.Settlement) { s.Deployment = name }))
	}
	longest := strings.Repeat("a", 64)
	for text, want := range map[string][]registry.Settlement{
		`null`:                         nil,
		`[]`:                           nil,
		`[` + settlementJSON("") + `]`: {settled},
		`[` + settlementJSON(`,"claimPeriod":172800,"native":true,"sameChain":false,"outputOracle":"origin"`) + `]`: {with(func(s *registry.Settlement) {
			s.ClaimPeriod, s.Native, s.SameChain, s.OutputOracle = 172_800, true, false, registry.OriginOracle
		})},
		`[` + settlementJSON(`,"claimPeriod":null,"outputOracle":"destination"`) + `]`: {settled},
		`[` + settlementJSON(`,"minDeadline":1200`) + `]`:                              {with(func(s *registry.Settlement) { s.MinDeadline = 1200 })},
		`[` + settlementJSON(`,"minDeadline":518400`) + `]`:                            {with(func(s *registry.Settlement) { s.MinDeadline = 518_400 })},
		`[` + settlementJSON(`,"claimPeriod":1`) + `]`:                                 {with(func(s *registry.Settlement) { s.ClaimPeriod = 1 })},
		`[` + settlementJSON(`,"claimPeriod":31536000`) + `]`:                          {with(func(s *registry.Settlement) { s.ClaimPeriod = 31_536_000 })},
		`[` + settlementJSON(`,"signing":["permit2"]`) + `]`:                           {with(func(s *registry.Settlement) { s.Signing = []wire.SigningScheme{wire.Permit2} })},
		`[` + settlementJSON(`,"signing":["erc3009","permit2"]`) + `]`:                 {with(func(s *registry.Settlement) { s.Signing = []wire.SigningScheme{wire.ERC3009, wire.Permit2} })},
		`[` + settlementJSON(`,"signing":[]`) + `]`:                                    {settled},
		`[` + settlementJSON(`,"signing":null`) + `]`:                                  {settled},
		`[` + replaced(inputSettler, strings.ToLower(inputSettler)) + `]`:              {settled},
		`[` + replaced(`"a"`, `"`+longest+`"`) + `]`:                                   {with(func(s *registry.Settlement) { s.Deployment = longest })},
		`[` + replaced(`"a"`, `"lifi-v2.1"`) + `,` + settlementJSON("") + `]`:          {with(func(s *registry.Settlement) { s.Deployment = "lifi-v2.1" }), settled},
		`[` + strings.Join(many, ",") + `]`:                                            first,
	} {
		got, reason := readSettlements(t, text)
		if diff := cmp.Diff(want, got); diff != "" || reason != "" {
			t.Errorf("%s: %s (-want +got):\n%s", text, reason, diff)
		}
	}
}

func TestReadList_RefusedSettlements(t *testing.T) {
	t.Parallel()
	replaced := func(old, replacement string) string {
		return `[` + strings.Replace(settlementJSON(""), old, replacement, 1) + `]`
	}
	const zero = "0x0000000000000000000000000000000000000000"
	rows := map[string]string{
		`{}`: "settlements must be an array",
		`1`:  "settlements must be an array",
		`[` + settlementJSON("") + strings.Repeat(`,`+settlementJSON(""), 16) + `]`: "settlements has 17 entries, more than 16",
		`[` + settlementJSON("") + `,` + settlementJSON("") + `]`:                   `settlements[1]: deployment "a" stands earlier in the same list`,
		`[1]`:    "settlements[0]: json: cannot unmarshal number",
		`[null]`: `settlements[0]: scheme must be "oif-v1/StandardOrder", the only one that is supported, not ""`,
		`[{}]`:   `settlements[0]: scheme must be "oif-v1/StandardOrder", the only one that is supported, not ""`,
		replaced("oif-v1/StandardOrder", "erc7683-v1/OrderData"): `settlements[0]: scheme must be "oif-v1/StandardOrder", the only one that is supported, not "erc7683-v1/OrderData"`,
		replaced(inputSettler, inputSettler[:41]):                "settlements[0]: inputSettler must be an EVM address",
		replaced(inputSettler, zero):                             "settlements[0]: inputSettler must not be the zero address",
		replaced(outputSettler, ""):                              "settlements[0]: outputSettler must be an EVM address",
		replaced(outputSettler, zero):                            "settlements[0]: outputSettler must not be the zero address",
		replaced(oracle, strings.Replace(oracle, "eE", "Ee", 1)): "settlements[0]: oracle the address has a wrong EIP-55 checksum",
		replaced(oracle, zero):                                   "settlements[0]: oracle must not be the zero address",
		replaced(`,"oracle":"`+oracle+`"`, ""):                   "settlements[0]: oracle must be an EVM address",
		`[` + settlementJSON(`,"native":1`) + `]`:                "settlements[0]: json: cannot unmarshal number",
		`[` + settlementJSON(`,"outputOracle":""`) + `]`:         `settlements[0]: outputOracle must be "destination" or "origin", not ""`,
		`[` + settlementJSON(`,"outputOracle":"Origin"`) + `]`:   `settlements[0]: outputOracle must be "destination" or "origin", not "Origin"`,
		`[` + settlementJSON(`,"domain":1`) + `]`:                `settlements[0]: json: unknown field "domain"`,

		`[` + settlementJSON(`,"signing":"permit2"`) + `]`:             "settlements[0]: signing must be an array of strings",
		`[` + settlementJSON(`,"signing":[1]`) + `]`:                   "settlements[0]: signing must be an array of strings",
		`[` + settlementJSON(`,"signing":[null]`) + `]`:                "settlements[0]: signing must be an array of strings",
		`[` + settlementJSON(`,"signing":["erc3009","Permit2"]`) + `]`: `settlements[0]: signing[1] must be "permit2" or "erc3009", not "Permit2"`,
		`[` + settlementJSON(`,"signing":["permit2","permit2"]`) + `]`: `settlements[0]: signing[1]: "permit2" stands earlier in the same list`,
	}
	for _, name := range []string{"", "A", "-a", ".a", "a b", "a_b", "ä", strings.Repeat("a", 65), `a\n`} {
		rows[replaced(`"a"`, `"`+name+`"`)] = "settlements[0]: deployment must have 1 to 64 characters of a-z, 0-9, dot and hyphen"
	}
	for _, number := range []string{`518401`, `-1`, `1.5`, `1e3`, `"1200"`, `true`} {
		rows[`[`+settlementJSON(`,"minDeadline":`+number)+`]`] = "settlements[0]: minDeadline must be a whole number from 0 to 518400, in digits"
	}
	for _, number := range []string{`0`, `31536001`, `-1`, `1.5`, `1e3`, `"14400"`, `true`} {
		rows[`[`+settlementJSON(`,"claimPeriod":`+number)+`]`] = "settlements[0]: claimPeriod must be a whole number from 1 to 31536000, in digits"
	}
	for text, want := range rows {
		if got, reason := readSettlements(t, text); !strings.HasPrefix(reason, want) {
			t.Errorf("%s: refused with %q, want %q; read %+v", text, reason, want, got)
		}
	}
}
