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

	"intents.internal/deploy/chains/contracts"
	"intents.internal/deploy/chains/contracts/contractstest"
	"intents.internal/deploy/chains/solver"
	"intents.internal/pkg/testkit/asynctest"
)

const (
	owner, user = 0, 1
	// solverAccount fills and claims; its address differs between the chains.
	solverAccount = 2
	claimed       = 2
)

// world is two chains with the contracts of a deployment and a token each, and a gateway.
type world struct {
	*gateway
	origin, destination *side
	log                 *asynctest.Buffer
	deadline            time.Time
	attested            map[common.Hash]bool
}

type side struct {
	*contractstest.Chain
	input, output, oracle, token contractstest.Deployed
}

func startWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		gateway: startGateway(t), origin: startSide(t, 31337), destination: startSide(t, 31338),
		log: &asynctest.Buffer{}, deadline: time.Now().Add(time.Hour), attested: map[common.Hash]bool{},
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the solver's log:\n" + w.log.String())
		}
	})
	return w
}

func startSide(t *testing.T, id int64) *side {
	t.Helper()
	s := &side{Chain: contractstest.Start(t, id)}
	s.input, s.output = s.Deploy(t, "InputSettlerEscrow"), s.Deploy(t, "OutputSettlerSimple")
	s.oracle, s.token = s.Deploy(t, "OwnedOracle", s.Account(owner)), s.Deploy(t, "TestTether", "Test", "TEST", uint8(6))
	return s
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
			Log:    slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Chains: []solver.Chain{w.origin.config(), w.destination.config()},
			Prices: w.prices(),
		})
		if err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

// prices make 1000 wei worth 997 units of the tokens, after the fee.
func (w *world) prices() (list []solver.Price) {
	noContract := w.destination.token.Address
	noContract[common.AddressLength-1]++
	for _, token := range []common.Address{{}, w.origin.token.Address, w.destination.token.Address, noContract} {
		list = append(list, solver.Price{Token: token, Decimals: 6, Cents: 100})
	}
	return list
}

func (s *side) config() solver.Chain {
	return solver.Chain{
		ID: fmt.Sprintf("eip155:%d", s.ID), RPC: s.URL, Key: s.Keys[solverAccount],
		InputSettler: s.input.Address, OutputSettler: s.output.Address, Oracle: s.oracle.Address,
	}
}

// order is one of a user's, 1000 wei in and 990 of the token out.
func (w *world) order(from, to *side, nonce int64) contracts.StandardOrder {
	inputOracle, outputOracle := from.oracle, to.oracle
	if from == to {
		inputOracle, outputOracle = to.output, to.output
	}
	return contracts.StandardOrder{
		User: from.Account(user), Nonce: big.NewInt(nonce), OriginChainId: from.ID,
		Expires: uint32(w.deadline.Unix()), FillDeadline: uint32(w.deadline.Unix()), InputOracle: inputOracle.Address,
		Inputs: [][2]*big.Int{{new(big.Int), big.NewInt(1000)}},
		Outputs: []contracts.MandateOutput{{
			Oracle: outputOracle.Word(), Settler: to.output.Word(), ChainId: to.ID, Token: to.token.Word(), Amount: big.NewInt(990),
			Recipient: common.BigToHash(big.NewInt(0x10000 + nonce)),
		}},
	}
}

func (w *world) bridge(nonce int64) contracts.StandardOrder {
	return w.order(w.origin, w.destination, nonce)
}

func (w *world) swap(nonce int64) contracts.StandardOrder { return w.order(w.origin, w.origin, nonce) }

// from is the chain of an order's origin.
func (w *world) from(o contracts.StandardOrder) *side {
	if o.OriginChainId.Cmp(w.origin.ID) == 0 {
		return w.origin
	}
	return w.destination
}

func (w *world) id(t *testing.T, o contracts.StandardOrder) common.Hash {
	t.Helper()
	at := w.from(o)
	return contractstest.Read[[32]byte](t, at.Chain, at.input, "orderIdentifier", o)
}

// record makes the order an intent's; without it the order is somebody else's.
func (w *world) record(t *testing.T, o contracts.StandardOrder, reference string) {
	t.Helper()
	kind := "bridge"
	if o.OriginChainId.Cmp(o.Outputs[0].ChainId) == 0 {
		kind = "swap"
	}
	if reference == "" {
		w.gateway.record(w.id(t, o), kind, nil)
		return
	}
	w.gateway.record(w.id(t, o), kind, &reference)
}

func (w *world) open(t *testing.T, o contracts.StandardOrder) {
	t.Helper()
	at := w.from(o)
	at.Send(t, user, 1000*int64(len(o.Inputs)), at.input, "open", o)
}

// recordAndOpen makes an intent without reference and opens its order.
func (w *world) recordAndOpen(t *testing.T, o contracts.StandardOrder) {
	t.Helper()
	w.record(t, o, "")
	w.open(t, o)
}

func (w *world) status(t *testing.T, o contracts.StandardOrder) uint8 {
	t.Helper()
	at := w.from(o)
	return contractstest.Read[uint8](t, at.Chain, at.input, "orderStatus", w.id(t, o))
}

// relay attests the fills of each chain on the other one.
func (w *world) relay(t *testing.T) {
	t.Helper()
	for from, to := range map[*side]*side{w.origin: w.destination, w.destination: w.origin} {
		for _, l := range from.Logs(t, from.output, "OutputFilled") {
			values, err := from.output.ABI.Events["OutputFilled"].Inputs.NonIndexed().Unpack(l.Data)
			if err != nil {
				t.Fatal(err)
			}
			output := *abi.ConvertType(values[2], new(contracts.MandateOutput)).(*contracts.MandateOutput)
			if output.Oracle == from.oracle.Word() && !w.attested[l.TxHash] {
				to.Send(t, owner, 0, to.oracle, "setAttestation", l.Topics[1], values[0], values[1], output)
				w.attested[l.TxHash] = true
			}
		}
	}
}

func (w *world) waitClaimed(t *testing.T, orders ...contracts.StandardOrder) {
	t.Helper()
	for _, o := range orders {
		asynctest.Eventually(t, fmt.Sprintf("the order %s is claimed", w.id(t, o)), func() bool {
			w.relay(t)
			return w.status(t, o) == claimed
		})
	}
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

// paid is what the recipient of an order has.
func (w *world) paid(t *testing.T, o contracts.StandardOrder) int64 {
	t.Helper()
	output, to := o.Outputs[0], w.destination
	if output.ChainId.Cmp(w.origin.ID) == 0 {
		to = w.origin
	}
	recipient := common.BytesToAddress(output.Recipient[:])
	if output.Token == [32]byte{} {
		return to.Balance(t, recipient).Int64()
	}
	return contractstest.Read[*big.Int](t, to.Chain, to.token, "balanceOf", recipient).Int64()
}
