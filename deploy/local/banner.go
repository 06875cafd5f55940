package main

import (
	"fmt"
	"os"
	"strings"

	"intents.internal/deploy/stack"
)

// printBanner prints the addresses, the account and example requests. Its keys are secrets of this machine's demo account only.
func printBanner(env stack.Env, data string) {
	fmt.Fprintf(os.Stdout, `
The service is ready.

  Gateway    %s
  Console    %s/console
  Core       %s
  Metrics    %s
             %s
  Postgres   %s
             %s
  Redis      %s
             %s
  Data       %s

  Account    %s   password %s
  Test key   %s
  Live key   %s

Tokens on a test network:

  curl -s '%s/v2/tokens?chain-id=eip155:11155111' -H 'x-api-key: %s'

A transfer of 0.001 ETH there:

  curl -s '%s/v2/transfers' -H 'x-api-key: %s' -H 'content-type: application/json' -d '{
    "source": {
      "account": "eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
      "token": "eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE",
      "amount": "1000000000000000"
    },
    "destination": {"account": "eip155:11155111:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}
  }'

Its events, and with after=NEXT those that come:

  curl -N '%s/v2/events?wait=25' -H 'x-api-key: %s'

Ctrl-C stops all processes and keeps the data.

`,
		strings.Join(env.GatewayURLs, "\n             "), env.GatewayURL, strings.Join(env.CoreURLs, "\n             "), env.GatewayMetricsURL, env.CoreMetricsURL,
		env.PostgresSource, env.DatabaseURL, env.RedisSource, env.RedisURL, data,
		env.AccountEmail, env.AccountPassword, env.TestKey, env.LiveKey,
		env.GatewayURL, env.TestKey, env.GatewayURL, env.TestKey, env.GatewayURL, env.TestKey)
}
