package provider

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"intents.internal/pkg/caip"
)

// standardOrder is the argument of an input settler's open.
type standardOrder struct {
	User                  common.Address
	Nonce                 *big.Int
	OriginChainId         *big.Int
	Expires, FillDeadline uint32
	InputOracle           common.Address
	Inputs                [][2]*big.Int
	Outputs               []mandateOutput
}

type mandateOutput struct {
	Oracle, Settler [32]byte
	ChainId         *big.Int
	Token           [32]byte
	Amount          *big.Int
	Recipient       [32]byte
	CallbackData    []byte
	Context         []byte
}

var settlerABI = func() abi.ABI {
	const output = `{"type":"tuple[]","name":"outputs","components":[{"type":"bytes32","name":"oracle"},{"type":"bytes32","name":"settler"},
		{"type":"uint256","name":"chainId"},{"type":"bytes32","name":"token"},{"type":"uint256","name":"amount"},
		{"type":"bytes32","name":"recipient"},{"type":"bytes","name":"callbackData"},{"type":"bytes","name":"context"}]}`
	parsed, err := abi.JSON(strings.NewReader(`[{"type":"function","name":"open","inputs":[{"type":"tuple","name":"order","components":[
		{"type":"address","name":"user"},{"type":"uint256","name":"nonce"},{"type":"uint256","name":"originChainId"},
		{"type":"uint32","name":"expires"},{"type":"uint32","name":"fillDeadline"},{"type":"address","name":"inputOracle"},
		{"type":"uint256[2][]","name":"inputs"},` + output + `]}]}]`))
	if err != nil {
		panic(err) // the text is constant
	}
	return parsed
}()

// offeredOrder is the order that a provider shows with its quote.
type offeredOrder struct {
	// chain and settler are where it is opened.
	chain, settler string
	order          standardOrder
	// unreadable means that the provider shows something that is no such order.
	unreadable bool
}

// openedOrder is the order that a transaction opens.
func openedOrder(chain, to, calldata string) *offeredOrder {
	order, ok := decodeOpen(calldata)
	return &offeredOrder{chain: chain, settler: to, order: order, unreadable: !ok}
}

// claimPeriod is how long after its deadline the order can be claimed.
func (o offeredOrder) claimPeriod() time.Duration {
	return time.Duration(int64(o.order.Expires)-int64(o.order.FillDeadline)) * time.Second
}

// compare returns why the order that a provider shows is not the one that we would make of its amounts, empty if it is: the same user, recipient,
// tokens and chains by the same contracts, at least as good for the user, and open to every solver.
func (r Request) compare(offered offeredOrder, source, destination *big.Int) dropReason {
	order := offered.order
	if offered.unreadable || len(order.Inputs) != 1 || len(order.Outputs) != 1 {
		return dropContract
	}
	in, out := order.Inputs[0], order.Outputs[0]
	sameOrigin := offered.chain == r.Source.Account.Chain.String() && sameAddress(offered.settler, r.Settlement.InputSettler) &&
		order.User == common.HexToAddress(r.Source.Account.Address) && order.InputOracle == common.HexToAddress(r.Settlement.InputOracle) &&
		isChain(order.OriginChainId, r.Source.Account.Chain) && in[0].Cmp(common.HexToAddress(assetAddress(r.Source.Token)).Big()) == 0
	sameOutput := isChain(out.ChainId, r.Destination.Account.Chain) &&
		out.Oracle == word(r.Settlement.OutputOracle) && out.Settler == word(r.Settlement.OutputSettler) &&
		out.Token == word(assetAddress(r.Destination.Token)) && out.Recipient == word(r.Destination.Account.Address)
	switch {
	case !sameOrigin || !sameOutput:
		return dropContract
	case in[1].Cmp(source) > 0 || in[1].Sign() < 0 || out.Amount.Cmp(destination) < 0:
		return dropAmount
	case len(out.Context) > 0 && out.Context[0]&exclusiveContext == exclusiveContext:
		return dropExclusive
	}
	return ""
}

// exclusiveContext are the bits of the order types 0xe0 and 0xe1 in the first byte of an output's context: at first only one solver may fill the
// order (FulfilmentLib of oif-contracts).
const exclusiveContext = 0xe0

// decodeOpen decodes the calldata of open(StandardOrder).
func decodeOpen(data string) (order standardOrder, ok bool) {
	raw, err := hex.DecodeString(strings.TrimPrefix(data, "0x"))
	open := settlerABI.Methods["open"]
	if err != nil || !bytes.HasPrefix(raw, open.ID) {
		return order, false
	}
	values, err := open.Inputs.Unpack(raw[len(open.ID):])
	if err != nil {
		return order, false
	}
	return *abi.ConvertType(values[0], new(standardOrder)).(*standardOrder), true //nolint:forcetypeassert // the type is asked for
}

func word(address string) [32]byte { return common.BytesToHash(common.HexToAddress(address).Bytes()) }

func isChain(number *big.Int, chain caip.ChainID) bool {
	want, ok := chain.Number()
	return ok && number.IsUint64() && number.Uint64() == want
}
