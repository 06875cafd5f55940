package watch_test

import (
	"testing"

	"intents.internal/core/rpc/rpctest"
)

// Anybody can have a settler emit events, as many as a block holds. A block with more than any provider returns at once holds up no chain: the
// events of live orders are asked for by their ids, and what one flooded order hides is found by the comparison with the settlers.
func TestFlooded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	opened, flooded := w.confirmedBridge(), w.confirmedBridge()
	const limit = 3
	for _, node := range w.nodes[baseSepolia] {
		node.Set(func(f *rpctest.Faults) { f.ResultLimit = limit })
	}
	var block []rpctest.Tx
	for range limit + 1 {
		stranger := *opened
		stranger.OrderID = [32]byte{1}
		ofOne := w.fill(flooded)
		ofOne.Logs[0].Data[len(ofOne.Logs[0].Data)-1] = 1 // the output of another order
		block = append(block, w.fill(&stranger), ofOne)
	}
	block = append(block, w.fill(opened), w.fill(flooded))
	w.chains[baseSepolia].SetFilled(flooded, true)
	w.mine(baseSepolia, block...)
	w.deepen(baseSepolia, 2*confirmations)
	w.want(opened, "created submitted confirmed filled")
	w.want(flooded, "created submitted confirmed")
	if w.count("intents_core_chain_flooded_blocks_total") == 0 {
		t.Error("the block is not counted")
	}

	for _, node := range w.nodes[baseSepolia] {
		node.Set(func(f *rpctest.Faults) { f.ResultLimit = 0 }) // of a range; the order's own events are few enough
	}
	w.due()
	w.tick(sepolia)
	w.tick(baseSepolia)
	w.want(flooded, "created submitted confirmed filled")

	later := w.bridge()
	w.mine(sepolia, w.open(later))
	w.deepen(sepolia, 2*confirmations)
	w.want(later, "created submitted confirmed")
}
