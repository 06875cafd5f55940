package transfer_test

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// The chains of the fixture: two testnets with a deployment, which fills orders of the first on its own chain too, one testnet
// without a settlement, and a mainnet.
var (
	sepolia     = caip.EIP155Chain(11155111)
	baseSepolia = caip.EIP155Chain(84532)
	amoy        = caip.EIP155Chain(80002)
	mainnet     = caip.EIP155Chain(1)
)

const (
	alice      = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	bob        = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	usdc       = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	weth       = "0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"
	maxUint256 = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
)

// The first 48 bits of id are its time in milliseconds.
var id = uuid.MustParse("0199a1b2-c3c4-7e5f-8a6b-0c1d2e3f4a01")

func fixture() *registry.Snapshot {
	newChain := func(id caip.ChainID, env network.Environment, settlements ...registry.Settlement) registry.Chain {
		return registry.Chain{ID: id, Name: id.String(), Environment: env, Settlements: settlements}
	}
	here, there := deployment("a", 1), deployment("a", 2)
	here.SameChain, here.Native = true, true
	return registryOf(
		newChain(sepolia, network.Test, here),
		newChain(baseSepolia, network.Test, there),
		newChain(amoy, network.Test),
		newChain(mainnet, network.Live),
	)
}

// deployment is a settlement whose contracts' addresses are made of its number.
func deployment(name string, number int64) registry.Settlement {
	return registry.Settlement{
		Scheme: registry.StandardOrder, Deployment: name, ClaimPeriod: 3600, OutputOracle: registry.DestinationOracle,
		InputSettler: address(10 * number), OutputSettler: address(10*number + 1), Oracle: address(10*number + 2),
	}
}

func address(n int64) string { return common.BigToAddress(big.NewInt(n)).Hex() }

// registryOf has the same tokens on all chains.
func registryOf(chains ...registry.Chain) *registry.Snapshot {
	var tokens []registry.Token
	for _, c := range chains {
		for symbol, address := range map[string]string{"ETH": registry.NativeAddress, "USDC": usdc, "WETH": weth} {
			tokens = append(tokens, registry.Token{ID: caip.AccountID{Chain: c.ID, Address: address}, Symbol: symbol})
		}
	}
	return registry.NewSnapshot(1, chains, tokens)
}

var bigInts = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })

func side(c caip.ChainID, account, tokenAddress, amount string) wire.Leg {
	leg := wire.Leg{Account: caip.AccountID{Chain: c, Address: account}, Amount: amount}
	if tokenAddress != "" {
		leg.Token = caip.AccountID{Chain: c, Address: tokenAddress}
	}
	return leg
}

func TestNew(t *testing.T) {
	t.Parallel()
	caller := transfer.Caller{AccountID: uuid.New(), KeyID: uuid.New(), Environment: network.Test}
	created := time.UnixMilli(0x0199a1b2c3c4).UTC()
	request := wire.TransferRequest{
		Source: side(sepolia, alice, usdc, "1000000"), Destination: side(baseSepolia, bob, usdc, "995000"), Reference: "inv-42",
	}
	got, err := transfer.New(id, caller, request, fixture())
	if err != nil {
		t.Fatal(err)
	}
	leg := func(l wire.Leg) transfer.Leg {
		amount, _ := new(big.Int).SetString(l.Amount, 10)
		return transfer.Leg{Account: l.Account, Token: l.Token, Amount: amount}
	}
	want := &transfer.Intent{
		ID: id, AccountID: caller.AccountID, KeyID: caller.KeyID, Environment: network.Test, Type: transfer.Bridge, Status: transfer.Created,
		OrderID: got.OrderID, Source: leg(request.Source), Destination: leg(request.Destination),
		Settlement: transfer.Settlement{
			Scheme: registry.StandardOrder, Deployment: "a", InputSettler: address(10), OutputSettler: address(21),
			InputOracle: address(12), OutputOracle: address(22), Expires: created.Add(2 * time.Hour).Truncate(time.Second),
		},
		Deadline: created.Add(time.Hour).Truncate(time.Second), Reference: "inv-42", CreatedAt: created, UpdatedAt: created,
	}
	if diff := cmp.Diff(want, got, bigInts); diff != "" {
		t.Errorf("intent (-want +got):\n%s", diff)
	}
	if order, err := got.Order(); err != nil || order.ID() != got.OrderID {
		t.Errorf("the order is %+v, %v", order, err)
	}
}

// The first fault of a request is the one reported.
func TestNew_RejectsOrInfers(t *testing.T) {
	t.Parallel()
	unknownChain := caip.EIP155Chain(424242)
	zero := "0x0000000000000000000000000000000000000000"
	at := func(d time.Duration) time.Time { return time.UnixMilli(0x0199a1b2c3c4).Add(d) }
	for name, c := range map[string]struct {
		source, destination wire.Leg
		deadline            time.Time
		want                string // a type, or a rejection's code and the member that has to change
	}{
		"erc-20 transfer":           {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, bob, "", ""), want: "transfer"},
		"native transfer":           {source: side(amoy, alice, registry.NativeAddress, maxUint256), destination: side(amoy, bob, registry.NativeAddress, maxUint256), want: "transfer"},
		"swap":                      {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, alice, weth, "1"), want: "swap"},
		"wrapping is a swap":        {source: side(sepolia, alice, registry.NativeAddress, "1"), destination: side(sepolia, alice, weth, "1"), want: "swap"},
		"bridge":                    {source: side(sepolia, alice, usdc, "1"), destination: side(baseSepolia, alice, usdc, "1"), want: "bridge"},
		"bridge to another token":   {source: side(sepolia, alice, usdc, "1"), destination: side(baseSepolia, bob, weth, "1"), want: "bridge"},
		"unknown chain":             {source: side(unknownChain, alice, usdc, "1"), destination: side(sepolia, bob, usdc, "1"), want: "UNSUPPORTED_CHAIN /source/account"},
		"unknown before mismatch":   {source: wire.Leg{Account: caip.AccountID{Chain: sepolia, Address: alice}, Token: caip.AccountID{Chain: unknownChain, Address: usdc}, Amount: "1"}, destination: side(sepolia, bob, usdc, ""), want: "UNSUPPORTED_CHAIN /source/token"},
		"unknown destination chain": {source: side(sepolia, alice, usdc, "1"), destination: side(unknownChain, bob, usdc, "1"), want: "UNSUPPORTED_CHAIN /destination/account"},
		"unknown chain of a token":  {source: side(sepolia, alice, usdc, "1"), destination: wire.Leg{Account: caip.AccountID{Chain: sepolia, Address: bob}, Token: caip.AccountID{Chain: unknownChain, Address: weth}}, want: "UNSUPPORTED_CHAIN /destination/token"},
		"unknown destination token": {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, bob, alice, "1"), want: "UNKNOWN_TOKEN /destination/token"},
		"source mismatch":           {source: wire.Leg{Account: caip.AccountID{Chain: sepolia, Address: alice}, Token: caip.AccountID{Chain: amoy, Address: usdc}, Amount: "1"}, destination: side(sepolia, bob, usdc, ""), want: "CHAIN_MISMATCH /source/token"},
		"defaulted token mismatch":  {source: side(sepolia, alice, usdc, "1"), destination: side(baseSepolia, bob, "", "1"), want: "CHAIN_MISMATCH /destination/token"},
		"unknown token":             {source: side(sepolia, alice, bob, "1"), destination: side(sepolia, bob, "", ""), want: "UNKNOWN_TOKEN /source/token"},
		"zero amount":               {source: side(sepolia, alice, usdc, "0"), destination: side(sepolia, bob, "", ""), want: "INVALID_AMOUNT /source/amount"},
		"2^256":                     {source: side(sepolia, alice, usdc, maxUint256[:77]+"6"), destination: side(sepolia, bob, "", ""), want: "INVALID_AMOUNT /source/amount"},
		"79 digits":                 {source: side(sepolia, alice, usdc, strings.Repeat("9", 79)), destination: side(sepolia, bob, "", ""), want: "INVALID_AMOUNT /source/amount"},
		"zero least out":            {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, bob, weth, "0"), want: "INVALID_AMOUNT /destination/amount"},
		"to the zero address":       {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, zero, "", ""), want: "INVALID_RECIPIENT /destination/account"},
		"to the token":              {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, usdc, "", ""), want: "INVALID_RECIPIENT /destination/account"},
		"from the zero address":     {source: side(sepolia, zero, usdc, "1"), destination: side(sepolia, bob, "", ""), want: "INVALID_RECIPIENT /source/account"},
		"to itself":                 {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, alice, "", ""), want: "SELF_TRANSFER /destination/account"},
		"transfer of less":          {source: side(sepolia, alice, usdc, "2"), destination: side(sepolia, bob, usdc, "1"), want: "DESTINATION_AMOUNT_NOT_ALLOWED /destination/amount"},
		"swap without least out":    {source: side(sepolia, alice, usdc, "2"), destination: side(sepolia, bob, weth, ""), want: "DESTINATION_AMOUNT_REQUIRED /destination/amount"},
		"59 seconds":                {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, bob, "", ""), deadline: at(59 * time.Second), want: "INVALID_DEADLINE /deadline"},
		"61 seconds":                {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, bob, "", ""), deadline: at(61 * time.Second), want: "transfer"},
		"7 days":                    {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, bob, "", ""), deadline: at(7 * 24 * time.Hour), want: "transfer"},
		"7 days and a second":       {source: side(sepolia, alice, usdc, "1"), destination: side(sepolia, bob, "", ""), deadline: at(7*24*time.Hour + time.Second), want: "INVALID_DEADLINE /deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := wire.TransferRequest{Source: c.source, Destination: c.destination, Deadline: c.deadline}
			intent, err := transfer.New(id, transfer.Caller{}, request, fixture())
			var rejection *transfer.Rejection
			switch {
			case errors.As(err, &rejection):
				if got := string(rejection.Code) + " " + rejection.Path; got != c.want {
					t.Errorf("rejected with %s, want %s", got, c.want)
				}
			case err != nil:
				t.Error(err)
			case string(intent.Type) != c.want:
				t.Errorf("type %s, want %s", intent.Type, c.want)
			}
		})
	}
}

// No type of intent and no quote may deliver to an account from which nobody can move what arrives. A contract counts on its own chain alone.
func TestRecipients(t *testing.T) {
	t.Parallel()
	const retired = "0x00000000000000000000000000000000000000Aa"
	known := registry.NewSnapshot(1, fixture().Chains, fixture().Tokens, caip.AccountID{Chain: sepolia, Address: retired}, caip.AccountID{Chain: baseSepolia, Address: retired})
	contracts := map[caip.ChainID][]string{sepolia: {address(10), address(11), address(12)}, baseSepolia: {address(20), address(21), address(22)}}
	for kind, c := range map[transfer.Type]struct{ source, destination wire.Leg }{
		transfer.Transfer: {side(sepolia, alice, usdc, "5"), side(sepolia, "", usdc, "5")},
		transfer.Swap:     {side(sepolia, alice, usdc, "5"), side(sepolia, "", weth, "5")},
		transfer.Bridge:   {side(sepolia, alice, usdc, "5"), side(baseSepolia, "", usdc, "5")},
	} {
		here := c.destination.Account.Chain
		refused := append([]string{caip.ZeroAddress, registry.NativeAddress, usdc, weth, retired}, contracts[here]...)
		elsewhere := contracts[baseSepolia]
		if here == baseSepolia {
			elsewhere = contracts[sepolia]
		}
		for _, to := range append(slices.Clone(refused), append(elsewhere, bob)...) {
			c.destination.Account.Address = to
			request := wire.TransferRequest{Source: c.source, Destination: c.destination}
			_, err := transfer.New(id, transfer.Caller{}, request, known)
			_, _, quotedErr := transfer.NewQuoted(id, transfer.Caller{}, request, known, transfer.Settlement{Scheme: registry.StandardOrder}, transfer.Quote{})
			request.Destination.Amount = ""
			_, routeErr := transfer.NewRoute(time.Now(), request, known)
			for what, err := range map[string]error{"an intent": err, "an intent of a quote": quotedErr, "a quote": routeErr} {
				var rejection *transfer.Rejection
				rejected := errors.As(err, &rejection) && rejection.Code == transfer.InvalidRecipient && rejection.Path == "/destination/account"
				if rejected != slices.Contains(refused, to) {
					t.Errorf("%s, %s to %s: %v", what, kind, to, err)
				}
			}
		}
	}
}

func TestWrongEnvironment(t *testing.T) {
	t.Parallel()
	request := wire.TransferRequest{
		Source: side(sepolia, alice, usdc, "1"), Destination: side(mainnet, bob, usdc, "1"),
	}
	for env, want := range map[network.Environment]caip.ChainID{network.Test: mainnet, network.Live: sepolia} {
		got, wrong := transfer.WrongEnvironment(request, fixture(), env)
		if !wrong || got.ID != want {
			t.Errorf("for a %s key: %v, %t; want %s", env, got.ID, wrong, want)
		}
	}
	request.Destination = side(caip.EIP155Chain(424242), bob, usdc, "1")
	if got, wrong := transfer.WrongEnvironment(request, fixture(), network.Test); wrong {
		t.Errorf("a chain nobody knows has environment %s", got.Environment)
	}
}

// Every new intent has an order with its id and a transaction that moves the amount asked for.
func TestNew_Executable(t *testing.T) {
	t.Parallel()
	snapshot := fixture()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) wire.Leg {
			c := rapid.SampledFrom([]caip.ChainID{sepolia, baseSepolia, amoy, mainnet}).Draw(t, name+" chain")
			return side(c,
				rapid.SampledFrom([]string{alice, bob}).Draw(t, name+" account"),
				rapid.SampledFrom([]string{registry.NativeAddress, usdc, weth}).Draw(t, name+" token"),
				rapid.StringMatching(`[1-9][0-9]{0,76}`).Draw(t, name+" amount"))
		}
		request := wire.TransferRequest{Source: draw("source"), Destination: draw("destination")}
		fresh := uuid.Must(uuid.NewV7())
		intent, err := transfer.New(fresh, transfer.Caller{}, request, snapshot)
		if err != nil {
			return
		}
		order, err := intent.Order()
		if err != nil || order.ID() != intent.OrderID || order.Nonce.Cmp(new(big.Int).SetBytes(fresh[:])) != 0 {
			t.Fatalf("order %+v of %+v: %v", order, intent, err)
		}
		tx, err := intent.Tx(transfer.Moment{Now: intent.CreatedAt, BlockTime: time.Second})
		if err != nil || tx.From != request.Source.Account.Address || tx.Chain != request.Source.Account.Chain {
			t.Fatalf("tx %+v of %+v: %v", tx, intent, err)
		}
		native := registry.Native(request.Source.Token)
		if native != (tx.Value.Sign() > 0) || (len(tx.Allowances) == 1) != (!native && intent.Type != transfer.Transfer) {
			t.Fatalf("tx %+v of %+v", tx, intent)
		}
	})
}

func TestFinal_Ended(t *testing.T) {
	t.Parallel()
	all := []transfer.Status{
		transfer.Created, transfer.Submitted, transfer.Confirmed, transfer.Filled,
		transfer.Refunded, transfer.Failed, transfer.Expired, transfer.Cancelled,
	}
	type statuses struct{ Final, Ended []transfer.Status }
	ended := []transfer.Status{transfer.Filled, transfer.Refunded, transfer.Failed, transfer.Expired, transfer.Cancelled}
	order := statuses{[]transfer.Status{transfer.Filled, transfer.Refunded, transfer.Cancelled}, ended}
	want := map[transfer.Type]statuses{
		transfer.Transfer: {
			[]transfer.Status{transfer.Confirmed, transfer.Filled, transfer.Refunded, transfer.Cancelled},
			append([]transfer.Status{transfer.Confirmed}, ended...),
		},
		transfer.Swap: order, transfer.Bridge: order,
	}
	for kind, wanted := range want {
		var got statuses
		for _, status := range all {
			if transfer.Final(kind, status) {
				got.Final = append(got.Final, status)
			}
			if transfer.Ended(kind, status) {
				got.Ended = append(got.Ended, status)
			}
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("statuses of a %s (-want +got):\n%s", kind, diff)
		}
	}
}
