// Command core keeps accounts, API keys, chains, tokens and transfer intents in Postgres and serves them to gateways.
package main

import "intents.internal/core/command"

func main() { command.Main() }
