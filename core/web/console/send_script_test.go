package console_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// preparing has a wallet whose node answers eth_call with a result, or not at all, and prints what is prepared and what the wallet was asked.
const preparing = `
import { preparations } from "./transaction.mjs";
const results = [];
for (const { granted, inPlace, allowances } of JSON.parse(process.argv[2])) {
  const asked = [];
  const provider = {
    async request({ method, params }) {
      asked.push({ method, params });
      if (granted === "") throw Object.assign(new Error("unsupported"), { code: 4200 });
      return granted;
    },
  };
  const calls = { calls: [...allowances.map(() => ({ data: "approve" })), { data: "open" }] };
  results.push({ prepared: await preparations(provider, calls, allowances, inPlace), asked });
}
console.log(JSON.stringify(results));
`

// A token such as USDT on Ethereum refuses to change an allowance that is not 0, so that a smaller one than is needed is reset before.
func TestSendScript_Preparations(t *testing.T) {
	t.Parallel()
	requireNode(t)
	const word = "0x00000000000000000000000000000000000000000000000000000000000000"
	type call struct {
		Data string `json:"data"`
	}
	type preparation struct {
		Name string `json:"name"`
		Call call   `json:"call"`
	}
	type request struct {
		Method string `json:"method"`
		Params []any  `json:"params"`
	}
	type result struct {
		Prepared []preparation `json:"prepared"`
		Asked    []request     `json:"asked"`
	}
	type allowance struct {
		Query  call   `json:"query"`
		Amount string `json:"amount"`
		Reset  call   `json:"reset"`
	}
	type wallet struct {
		Granted    string      `json:"granted"`
		InPlace    bool        `json:"inPlace"`
		Allowances []allowance `json:"allowances"`
	}
	needed := []allowance{{call{"allowance"}, "0x0a", call{"reset"}}}
	reset, approve := preparation{"reset of the allowance", call{"reset"}}, preparation{"approval", call{"approve"}}
	cases := []struct {
		name   string
		wallet wallet
		want   []preparation
	}{
		{"a native input, which needs no allowance", wallet{Granted: word + "05", Allowances: []allowance{}}, []preparation{}},
		{"no allowance", wallet{Granted: word + "00", Allowances: needed}, []preparation{approve}},
		{"too small an allowance", wallet{Granted: word + "09", Allowances: needed}, []preparation{reset, approve}},
		{"the service has an older block", wallet{Granted: word + "09", InPlace: true, Allowances: needed}, []preparation{reset, approve}},
		{"exactly the allowance", wallet{Granted: word + "0a", Allowances: needed}, []preparation{}},
		{"a greater allowance", wallet{Granted: word + "ff", Allowances: needed}, []preparation{}},
		{"no answer, and the service knows of the allowance", wallet{InPlace: true, Allowances: needed}, []preparation{}},
		{"no answer, and the service knows of none", wallet{Allowances: needed}, []preparation{approve}},
		{"no token at the address", wallet{Granted: "0x", Allowances: needed}, []preparation{approve}},
	}
	var wallets []wallet
	var want, got []result
	for _, c := range cases {
		wallets = append(wallets, c.wallet)
		asked := []request{}
		for range c.wallet.Allowances {
			asked = append(asked, request{"eth_call", []any{map[string]any{"data": "allowance"}, "latest"}})
		}
		want = append(want, result{c.want, asked})
	}
	input, err := json.Marshal(wallets)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(node(t, preparing, string(input)), &got); err != nil {
		t.Fatal(err)
	}
	for n, c := range cases {
		if diff := cmp.Diff(want[n], got[n]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// batching has wallets answer as the table of pkg/client says and prints what becomes of each: "in turn" or the error's code where the batch is
// refused; the hash of the last receipt, "reverted" or "unknown" where it is taken.
const batching = `
import { Failure, batchHash, codeOf, sendBatch } from "./transaction.mjs";
const { refused, cases } = JSON.parse(process.argv[2]);
const fail = (code) => { throw Object.assign(new Error("no"), { code }); };
const outcomes = {};
for (const code of [...refused.inTurn, ...refused.fails]) {
  const provider = { request: async ({ method }) => method === "wallet_sendCalls" ? fail(code) : {} };
  outcomes[code] = await sendBatch(provider, {}).then((id) => id === null ? "in turn" : id, (error) => "fails " + codeOf(error));
}
for (const { name, code, status, receipts } of cases) {
  const answer = { status, ...(receipts !== undefined && { receipts: Array.from({ length: receipts }, (_, n) => ({ transactionHash: n + 1 === receipts ? "sent" : "earlier" })) }) };
  const provider = { request: async () => code ? fail(code) : answer };
  outcomes[name] = await batchHash(provider, "0x01", 0).catch((error) => error instanceof Failure ? "reverted" : "unknown");
}
console.log(JSON.stringify(outcomes));
`

// The console and the TypeScript client read a wallet's answers alike.
func TestSendScript_Batches(t *testing.T) {
	t.Parallel()
	requireNode(t)
	text, err := os.ReadFile("../../../pkg/client/testdata/batches.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Refused struct{ InTurn, Fails []int }
		Cases   []struct{ Name, Outcome string }
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	for _, code := range table.Refused.InTurn {
		want[strconv.Itoa(code)] = "in turn"
	}
	for _, code := range table.Refused.Fails {
		want[strconv.Itoa(code)] = fmt.Sprint("fails ", code)
	}
	for _, c := range table.Cases {
		want[c.Name] = c.Outcome
	}
	if err := json.Unmarshal(node(t, batching, string(text)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(table.Cases) < 10 {
		t.Errorf("%d cases (-want +got):\n%s", len(table.Cases), diff)
	}
}

// requireNode skips the test where Node.js is not installed.
func requireNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err == nil {
		return
	} else if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip("node is not installed (Debian: apt-get install nodejs)")
}

// node runs a script beside the console's transaction.js and returns what it prints.
func node(t *testing.T, script, argument string) []byte {
	t.Helper()
	dir := t.TempDir()
	module, err := os.ReadFile("assets/transaction.js")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"transaction.mjs": module, "script.mjs": []byte(script)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "script.mjs"), argument)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	return printed
}
