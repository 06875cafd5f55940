// Command gateway is the proxy in front of core: it checks API keys, their environments and rate limits, and forwards the requests
// that pass.
package main

import "intents.internal/gateway/command"

func main() { command.Main() }
