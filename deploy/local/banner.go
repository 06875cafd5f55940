package main

import (
	"fmt"
	"io"
	"strings"

	"intents.internal/deploy/stack"
)

// printBanner prints the addresses, the account and the next commands. The keys belong to this machine's demo account only.
func printBanner(out io.Writer, env stack.Env, data string) {
	_, _ = fmt.Fprintf(out, `
The service is ready.

  Gateway    %s
  Console    %s/console
  Account    %s   password %s
  Test key   %s
  Live key   %s
  Chains     %s
  Data       %s   (every process's output is in its file %s)

`,
		strings.Join(env.GatewayURLs, "\n             "), env.GatewayURL, env.AccountEmail, env.AccountPassword, env.TestKey, env.LiveKey,
		chainsLine(env), data, logName)
	flag := ""
	if usual, err := usualData(); err != nil || usual != data {
		flag = " --data '" + data + "'"
	}
	next := tryNext
	if len(env.LocalChains) == 0 {
		next = tryNextWithoutChains
	}
	_, _ = io.WriteString(out, strings.ReplaceAll(next, " FLAG", flag)+"\nCtrl-C stops all processes and keeps the data.\n\n")
}

// chainsLine names the local chains and their state.
func chainsLine(env stack.Env) string {
	var parts []string
	for _, chain := range env.LocalChains {
		parts = append(parts, "eip155:"+chain.ID+" "+chain.RPCURL)
	}
	switch {
	case len(parts) == 0:
		return "no local ones run"
	case env.PID(stack.Chains) == 0:
		parts = append(parts, "(a line says when they are ready)")
	}
	return strings.Join(parts, "   ")
}

// tryNext creates an intent of each kind, the swap from a quote, like README.md. The tokens are tUSDC and tWETH of deploy/chains/lists.
const tryNext = `A transfer, a swap of a quote and a bridge, to paste in another terminal. Each answer has an id:

  eval "$(go run ./deploy/local env FLAG)"
  create() { curl -s $GATEWAY_URL/v2/transfers -H "x-api-key: $TEST_KEY" -H 'content-type: application/json' -d "$1"; }
  create '{"source": {"account": "eip155:31337:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "token": "eip155:31337:0xE1620de3a36756143582895e7E426Ade69e4f2D7", "amount": "1000000"},
           "destination": {"account": "eip155:31337:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}}'
  curl -s $GATEWAY_URL/v2/quotes -H "x-api-key: $TEST_KEY" -H 'content-type: application/json' -d '{
           "source": {"account": "eip155:31337:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "token": "eip155:31337:0xE1620de3a36756143582895e7E426Ade69e4f2D7", "amount": "1000000"},
           "destination": {"account": "eip155:31337:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "token": "eip155:31337:0x1Fa5e93549a4c07583E8e20806E5249AB96D7321"}}'
  create '{"quoteId": "QUOTE"}'   # the id of the first quote, within a minute
  create '{"source": {"account": "eip155:31337:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "token": "eip155:31337:0xE1620de3a36756143582895e7E426Ade69e4f2D7", "amount": "1000000"},
           "destination": {"account": "eip155:31338:0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "token": "eip155:31338:0xE1620de3a36756143582895e7E426Ade69e4f2D7", "amount": "990000"}}'
  go run ./deploy/local send ID FLAG   # sends the transaction to its local chain
  curl -s "$GATEWAY_URL/v2/events?wait=25" -H "x-api-key: $TEST_KEY"   # what has become of them
`

// tryNextWithoutChains creates an intent on a test network.
const tryNextWithoutChains = `A transfer on a test network, to paste in another terminal, and what has become of it:

  eval "$(go run ./deploy/local env FLAG)"
  create() { curl -s $GATEWAY_URL/v2/transfers -H "x-api-key: $TEST_KEY" -H 'content-type: application/json' -d "$1"; }
  create '{"source": {"account": "eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "token": "eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE", "amount": "1000"},
           "destination": {"account": "eip155:11155111:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}}'
  curl -s "$GATEWAY_URL/v2/events?wait=25" -H "x-api-key: $TEST_KEY"
`
