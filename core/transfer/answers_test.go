package transfer_test

import (
	"strings"
	"testing"
	"time"

	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// The same request is one that asks for the same, however it is spelled; another value of any member makes another.
func TestIntent_Answers(t *testing.T) {
	t.Parallel()
	parse := func(body string) wire.TransferRequest {
		t.Helper()
		request, issues := wire.DecodeTransferRequest([]byte(body))
		if len(issues) > 0 {
			t.Fatalf("%s: %+v", body, issues)
		}
		return request
	}
	const (
		source      = `{"account":"eip155:11155111:` + alice + `","token":"eip155:11155111:` + usdc + `","amount":"5"}`
		destination = `{"account":"eip155:11155111:` + bob + `"}`
		first       = `{"source":` + source + `,"destination":` + destination + `,"reference":"a/b","labels":{"a":"1","b":"<2>"}}`
	)
	known, created := fixture(), time.Date(2026, 11, 21, 12, 0, 0, 500_000_000, time.UTC)
	intent, err := transfer.New(transfer.NewID(created), transfer.Caller{Environment: network.Test}, parse(first), known)
	if err != nil {
		t.Fatal(err)
	}
	with := func(member string) string { return strings.TrimSuffix(first, "}") + `,` + member + `}` }
	replaced := func(former, by string) string { return strings.Replace(first, former, by, 1) }
	deadline := func(at time.Time) string { return with(`"deadline":"` + at.Format(time.RFC3339) + `"`) }
	whole := `{"account":"eip155:11155111:` + bob + `","token":"eip155:11155111:` + usdc + `","amount":"5"}`
	here, _ := known.Chain(sepolia)
	for body, want := range map[string]bool{
		first: true,
		" " + strings.ReplaceAll(first, ",", " ,\n\t") + "\n":                                                                  true,
		`{"labels":{"b":"\u003c2>","\u0061":"1"},"reference":"a/b","destination":` + destination + `,"source":` + source + `}`: true,
		replaced("a/b", `\u0061\/b`):            true,
		replaced(alice, strings.ToLower(alice)): true,
		replaced(destination, whole):            true,
		deadline(intent.Deadline):               true,

		replaced(`"5"`, `"6"`): false,
		replaced(bob, "0x71c7656ec7ab88b098defb751b7401b5f6d8976f"): false,
		strings.NewReplacer(alice, bob, bob, alice).Replace(first):  false,
		replaced(usdc, weth): false,
		replaced(destination, strings.Replace(whole, usdc, weth, 1)): false,
		replaced("a/b", "A/b"): false, replaced(`"reference":"a/b",`, ""): false,
		replaced("<2>", "<3>"): false, replaced(`"b":`, `"c":`): false, replaced(`,"b":"<2>"`, ""): false,
		replaced(`,"labels":{"a":"1","b":"<2>"}`, ""):   false,
		deadline(intent.Deadline.Add(30 * time.Minute)): false,
	} {
		if got := intent.Answers(parse(body), here); got != want {
			t.Errorf("%s: %t", body, got)
		}
	}
}
