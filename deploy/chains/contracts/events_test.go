package contracts_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/deploy/chains/contracts/contractstest"
)

// The service finds orders by these topics and positions.
func TestEvents_TopicsAndOrderIDs(t *testing.T) {
	t.Parallel()
	s := startSettlers(t, true)
	settled, refunded := s.bridge(1), s.bridge(2)
	s.open(t, settled)
	s.open(t, refunded)
	s.destination.Send(t, filler, 990, s.destinationSettler, "fill", settled.ID(), settled.Encode(), wordBytes(s.origin.Account(filler)))
	s.destination.Send(t, filler, messageFee, s.destinationSettler, "settle", idsOf([]contractstest.OrderData{settled}))
	s.deliver(t, true, settled)
	s.destination.PassTime(t, 2*time.Hour)
	s.destination.Send(t, user, messageFee, s.destinationSettler, "refund", []contractstest.OnchainOrder{refunded.Order()})
	s.deliver(t, false, refunded)
	for _, c := range []struct {
		event, topic string
		chain        *contractstest.Chain
		emitter      contractstest.Deployed
		orders       []contractstest.OrderData
		indexed      bool
		receiver     common.Address
	}{
		{"Open", "0x3448bbc2203c608599ad448eeb1007cea04b788ac631f9f558e8dd01a3c27b3d", s.origin, s.originSettler, []contractstest.OrderData{settled, refunded}, true, common.Address{}},
		{"Filled", "0x57f1f65270c1c2c1771948825ee86f8d23d11ab44b16eb9c213056e042d06e59", s.destination, s.destinationSettler, []contractstest.OrderData{settled}, false, common.Address{}},
		{"Settled", "0xa569bfd2e3bd9bd14cfdabad61aef5f3d5b18b0fcdf78805e65349dda2210fbc", s.origin, s.originSettler, []contractstest.OrderData{settled}, false, s.origin.Account(filler)},
		{"Refunded", "0x5e9f0820fcfb53b644becb775b651bae68c337106f21433e526551d1e02c1c0e", s.origin, s.originSettler, []contractstest.OrderData{refunded}, false, s.origin.Account(user)},
		{"Refund", "0x536286146d4af271695884c3088546e593d6165b08a2e29d706a87b7db74b201", s.destination, s.destinationSettler, nil, false, common.Address{}},
	} {
		if got := c.emitter.ABI.Events[c.event].ID.Hex(); got != c.topic {
			t.Errorf("topic0 of %s is %s, want %s", c.event, got, c.topic)
		}
		logs := c.chain.Logs(t, c.emitter, c.event)
		if c.orders != nil && len(logs) != len(c.orders) || len(logs) == 0 {
			t.Fatalf("%d events %s, want %d", len(logs), c.event, len(c.orders))
		}
		for n, o := range c.orders {
			id := common.BytesToHash(logs[n].Data[:32])
			topics := 1
			if c.indexed {
				topics, id = 2, logs[n].Topics[1]
			}
			if id != o.ID() || len(logs[n].Topics) != topics {
				t.Errorf("%s: order id %s and %d topics, want %x and %d", c.event, id, len(logs[n].Topics), o.ID(), topics)
			}
			if c.receiver != (common.Address{}) && common.BytesToAddress(logs[n].Data[32:64]) != c.receiver {
				t.Errorf("%s: the receiver is %x, want %s", c.event, logs[n].Data[32:64], c.receiver)
			}
		}
	}
}
