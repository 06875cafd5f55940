package solver_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"intents.internal/deploy/chains/contracts/contractstest"
	"intents.internal/deploy/chains/solver"
	"intents.internal/pkg/testkit/asynctest"
)

const (
	origin, destination = 31337, 31338
	owner, user         = 0, 1
	// solverAccount fills; its address differs between the chains.
	solverAccount = 2
	messageFee    = 5
)

// world is two chains with settlers and a token each, and a gateway.
type world struct {
	*gateway
	origin, destination               *contractstest.Chain
	originSettler, destinationSettler contractstest.Deployed
	originToken, destinationToken     contractstest.Deployed
	log                               *asynctest.Buffer
	deadline                          time.Time
}

func startWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		gateway: startGateway(t), origin: contractstest.Start(t, origin), destination: contractstest.Start(t, destination),
		log: &asynctest.Buffer{}, deadline: time.Now().Add(time.Hour),
	}
	w.originSettler = w.origin.Deploy(t, "Settler", uint32(origin), true, big.NewInt(messageFee))
	w.destinationSettler = w.destination.Deploy(t, "Settler", uint32(destination), true, big.NewInt(messageFee))
	w.originToken = w.origin.Deploy(t, "TestToken", "Origin", "ORG", uint8(6), false)
	w.destinationToken = w.destination.Deploy(t, "TestToken", "Destination", "DST", uint8(6), false)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the solver's log:\n" + w.log.String())
		}
	})
	return w
}

// run runs the solver until stop is called or the test ends.
func (w *world) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := solver.Run(ctx, solver.Config{
			Gateway: w.URL, APIKey: testKey, Delay: 20 * time.Millisecond,
			Log: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Chains: []solver.Chain{
				{ID: "eip155:31337", RPC: w.origin.URL, Settler: w.originSettler.Address, Key: w.origin.Keys[solverAccount]},
				{ID: "eip155:31338", RPC: w.destination.URL, Settler: w.destinationSettler.Address, Key: w.destination.Keys[solverAccount]},
			},
		})
		if err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

// bridge is an order from the origin, native in, to the destination, where a token is paid out.
func (w *world) bridge(nonce int64) contractstest.OrderData {
	return contractstest.OrderData{
		Sender: contractstest.Word(w.origin.Account(user)), Recipient: contractstest.Word(common.BigToAddress(big.NewInt(0x10000 + nonce))),
		OutputToken: w.destinationToken.Word(), AmountIn: big.NewInt(1000), AmountOut: big.NewInt(990), SenderNonce: big.NewInt(nonce),
		OriginDomain: origin, DestinationDomain: destination, DestinationSettler: w.destinationSettler.Word(),
		FillDeadline: uint32(w.deadline.Unix()), Data: []byte{},
	}
}

// swap is an order on the origin, native in and a token out.
func (w *world) swap(nonce int64) contractstest.OrderData {
	o := w.bridge(nonce)
	o.OutputToken, o.DestinationDomain, o.DestinationSettler = w.originToken.Word(), origin, w.originSettler.Word()
	return o
}

// record makes the order an intent's; without it the order is somebody else's.
func (w *world) record(t *testing.T, o contractstest.OrderData, reference string) {
	t.Helper()
	kind := "bridge"
	if o.OriginDomain == o.DestinationDomain {
		kind = "swap"
	}
	if reference == "" {
		w.gateway.record(t, o, kind, nil)
		return
	}
	w.gateway.record(t, o, kind, &reference)
}

func (w *world) open(t *testing.T, o contractstest.OrderData) {
	t.Helper()
	w.origin.Send(t, user, o.AmountIn.Int64(), w.originSettler, "open", o.Order())
}

// recordAndOpen makes an intent without reference and opens its order.
func (w *world) recordAndOpen(t *testing.T, o contractstest.OrderData) {
	t.Helper()
	w.record(t, o, "")
	w.open(t, o)
}

func status(t *testing.T, c *contractstest.Chain, settler contractstest.Deployed, o contractstest.OrderData) string {
	t.Helper()
	status := contractstest.Read[[32]byte](t, c, settler, "orderStatus", o.ID())
	return strings.TrimRight(string(status[:]), "\x00")
}

// settled tells whether the origin's settler was asked to pay the solver for a bridge, or has paid it for a swap.
func (w *world) settled(t *testing.T, o contractstest.OrderData) bool {
	t.Helper()
	if o.DestinationDomain == origin {
		return status(t, w.origin, w.originSettler, o) == "SETTLED"
	}
	for _, l := range w.destination.Logs(t, w.destinationSettler, "Settle") {
		values, err := w.destinationSettler.ABI.Events["Settle"].Inputs.Unpack(l.Data)
		if err != nil {
			t.Fatal(err)
		}
		for n, id := range *abi.ConvertType(values[0], new([][32]byte)).(*[][32]byte) {
			receiver := (*abi.ConvertType(values[1], new([][]byte)).(*[][]byte))[n]
			if id == o.ID() && common.BytesToAddress(receiver) == w.origin.Account(solverAccount) {
				return true
			}
		}
	}
	return false
}

func (w *world) waitSettled(t *testing.T, o contractstest.OrderData) {
	t.Helper()
	asynctest.Eventually(t, fmt.Sprintf("the order %s is settled", o.ID()), func() bool { return w.settled(t, o) })
}

func (w *world) waitLog(t *testing.T, parts ...string) {
	t.Helper()
	asynctest.Eventually(t, fmt.Sprintf("a log line with %q", parts), func() bool { return w.lines(parts...) > 0 })
}

// lines counts the log lines that have all parts.
func (w *world) lines(parts ...string) (n int) {
	for line := range strings.Lines(w.log.String()) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			n++
		}
	}
	return n
}

func balanceOf(t *testing.T, c *contractstest.Chain, token contractstest.Deployed, account [32]byte) int64 {
	t.Helper()
	return contractstest.Read[*big.Int](t, c, token, "balanceOf", common.BytesToAddress(account[:])).Int64()
}
