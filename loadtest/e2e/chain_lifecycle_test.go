package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lifecycleChain is a chain as js/lifecycle.mjs takes it.
type lifecycleChain struct {
	ID    uint64 `json:"id"`
	URL   string `json:"url"`
	Token string `json:"token"`
}

// lifecycles is what js/lifecycle.mjs prints: the statuses of each intent, then the transactions that were sent for it.
const lifecycles = `transfer: created submitted confirmed, send carries
swap: created submitted confirmed filled, open carries
bridge: created submitted confirmed filled, open carries
sped-up transfer: created submitted confirmed, send replaced, send carries
sped-up bridge: created submitted confirmed filled, open replaced, open carries
replaced transfer: created submitted failed TX_REPLACED, send replaced
replaced swap: created submitted failed TX_REPLACED, open replaced
refunded bridge: created submitted confirmed refunded, open carries
cancelled swap: created cancelled
unsent bridge: created expired
`

// startLifecycles starts js/lifecycle.mjs, which creates intents on the first chain and bridges to the second, with a key of its own and
// with viem. It mostly waits for a deadline, which is a minute ahead at the least; the function returned waits for its end.
func startLifecycles(t *testing.T, gateway string, owner *int, chains ...lifecycleChain) (end func(t *testing.T)) {
	t.Helper()
	if _, err := findNode(); err != nil {
		return func(t *testing.T) { t.Helper(); without(t, err.Error()) }
	}
	project := newNodeProject(t)
	input := encode(t, map[string]any{"gateway": gateway, "chains": chains, "owner": owner})
	var said string
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		said, err = project.command(t, input, "node", "lifecycle.mjs")
	}()
	t.Cleanup(func() { <-ended }) // before the directory is removed
	return func(t *testing.T) {
		t.Helper()
		<-ended
		if diff := cmp.Diff(lifecycles, said); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// startLifecyclesOnAnvil has the script fill orders and deliver messages, since no solver and no relay does. The nodes mine a block a
// second, as the local chains do.
func startLifecyclesOnAnvil(t *testing.T, s *chainStack, chains ...*evmChain) (end func(t *testing.T)) {
	t.Helper()
	var all []lifecycleChain
	for _, c := range chains {
		for range 12 {
			c.account(t)
		}
		c.MineEvery(t, time.Second)
		all = append(all, lifecycleChain{c.ChainID, c.URL, c.token.Address.Hex()})
	}
	owner := len(chains[0].Accounts) - 1
	return startLifecycles(t, s.Env().GatewayURL, &owner, all...)
}

// startLifecycles has another account send intents on the local chains, beside the walk.
func (w *readmeWalk) startLifecycles() (end func(t *testing.T)) {
	w.t.Helper()
	env := map[string]string{}
	for _, line := range w.env {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	const token = "0xE1620de3a36756143582895e7E426Ade69e4f2D7"
	return startLifecycles(w.t, env["GATEWAY_URL"], nil,
		lifecycleChain{31337, env["CHAIN_31337_RPC_URL"], token}, lifecycleChain{31338, env["CHAIN_31338_RPC_URL"], token})
}
