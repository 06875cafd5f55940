package provider

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
)

// standardOrder is the argument of an input settler's open.
type standardOrder struct {
	User                  common.Address
	Nonce                 *big.Int
	OriginChainId         *big.Int //nolint:revive // the ABI's spelling
	Expires, FillDeadline uint32
	InputOracle           common.Address
	Inputs                [][2]*big.Int
	Outputs               []mandateOutput
}

type mandateOutput struct {
	Oracle, Settler [32]byte
	ChainId         *big.Int //nolint:revive // the ABI's spelling
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

// opens reports whether a provider's transaction opens an order of the same user, recipient, tokens and chains by the same contracts as ours.
// It is compared and never sent: we build our own.
func (r Request) opens(call openCall) bool {
	data, err := hex.DecodeString(strings.TrimPrefix(call.data, "0x"))
	open := settlerABI.Methods["open"]
	if err != nil || len(data) < len(open.ID) || !bytes.Equal(data[:len(open.ID)], open.ID) {
		return false
	}
	values, err := open.Inputs.Unpack(data[len(open.ID):])
	if err != nil {
		return false
	}
	order := *abi.ConvertType(values[0], new(standardOrder)).(*standardOrder) //nolint:forcetypeassert // the type is asked for
	if len(order.Inputs) != 1 || len(order.Outputs) != 1 {
		return false
	}
	out := order.Outputs[0]
	origin, _ := r.Source.Account.Chain.Number()
	destination, _ := r.Destination.Account.Chain.Number()
	word := func(address string) [32]byte { return common.BytesToHash(common.HexToAddress(address).Bytes()) }
	return call.chain == r.Source.Account.Chain.String() && sameAddress(call.to, r.Settlement.InputSettler) &&
		order.User == common.HexToAddress(r.Source.Account.Address) && order.InputOracle == common.HexToAddress(r.Settlement.InputOracle) &&
		order.OriginChainId.Cmp(new(big.Int).SetUint64(origin)) == 0 &&
		order.Inputs[0][0].Cmp(common.HexToAddress(assetAddress(r.Source.Token)).Big()) == 0 &&
		out.ChainId.Cmp(new(big.Int).SetUint64(destination)) == 0 &&
		out.Oracle == word(r.Settlement.OutputOracle) && out.Settler == word(r.Settlement.OutputSettler) &&
		out.Token == word(assetAddress(r.Destination.Token)) && out.Recipient == word(r.Destination.Account.Address)
}
