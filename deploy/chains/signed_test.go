package main_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	main "intents.internal/deploy/chains"
	"intents.internal/deploy/chains/contracts"
)

var (
	domainType = []apitypes.Type{{Name: "name", Type: "string"}, {Name: "chainId", Type: "uint256"}, {Name: "verifyingContract", Type: "address"}}
	// authorizationTypes are those of ReceiveWithAuthorization (ERC-3009).
	authorizationTypes = apitypes.Types{
		"EIP712Domain": {domainType[0], {Name: "version", Type: "string"}, domainType[1], domainType[2]},
		"ReceiveWithAuthorization": {
			{Name: "from", Type: "address"}, {Name: "to", Type: "address"}, {Name: "value", Type: "uint256"},
			{Name: "validAfter", Type: "uint256"}, {Name: "validBefore", Type: "uint256"}, {Name: "nonce", Type: "bytes32"},
		},
	}
	// permit2Types are those of Permit2's batch transfer with an order as its witness.
	permit2Types = apitypes.Types{
		"EIP712Domain": domainType,
		"PermitBatchWitnessTransferFrom": {
			{Name: "permitted", Type: "TokenPermissions[]"}, {Name: "spender", Type: "address"}, {Name: "nonce", Type: "uint256"},
			{Name: "deadline", Type: "uint256"}, {Name: "witness", Type: "Permit2Witness"},
		},
		"TokenPermissions": {{Name: "token", Type: "address"}, {Name: "amount", Type: "uint256"}},
		"Permit2Witness": {
			{Name: "user", Type: "address"}, {Name: "expires", Type: "uint32"}, {Name: "inputOracle", Type: "address"},
			{Name: "outputs", Type: "MandateOutput[]"},
		},
		"MandateOutput": {
			{Name: "oracle", Type: "bytes32"}, {Name: "settler", Type: "bytes32"}, {Name: "chainId", Type: "uint256"},
			{Name: "token", Type: "bytes32"}, {Name: "amount", Type: "uint256"}, {Name: "recipient", Type: "bytes32"},
			{Name: "callbackData", Type: "bytes"}, {Name: "context", Type: "bytes"},
		},
	}
)

// A development account signs an order as wallets do, and another opens it: with an authorization of tEURC, and by Permit2, which has its own
// domain on each chain.
func TestOpenFor(t *testing.T) {
	t.Parallel()
	user, relayer := newAccount(t, 3), newAccount(t, 4)
	for _, chain := range []string{chainA, chainB} {
		mined(t, shared, chain, send(t, shared, chain, user, tUSDC, pack(t, main.Token, "approve", main.Permit2, big.NewInt(1))))
		for name, o := range map[string]order{"erc3009": signable(t, user, chain, tEURC), "permit2": signable(t, user, chain, tUSDC)} {
			kind, typed := byte(0), o.permit()
			if name == "erc3009" {
				kind, typed = 1, o.authorization()
			}
			signature := request[hexutil.Bytes](t, shared, chain, "eth_signTypedData_v4", user, typed)
			data := pack(t, main.InputSettler, "openFor", o.StandardOrder, user, append([]byte{kind}, signature...))
			had := balance(t, shared, chain, common.BigToAddress(o.Inputs[0][0]), inputSettler)
			mined(t, shared, chain, send(t, shared, chain, relayer, inputSettler, data))
			o.expect(t, shared, deposited)
			if got := balance(t, shared, chain, common.BigToAddress(o.Inputs[0][0]), inputSettler); got.Cmp(had) <= 0 {
				t.Errorf("%s on %s: the settler has %s, and had %s", name, chain, got, had)
			}
		}
	}
}

// signable returns an order of one unit of a token, which is not open.
func signable(t *testing.T, user common.Address, chain string, token common.Address) order {
	t.Helper()
	deadline := uint32(time.Now().Add(time.Hour).Unix()) //nolint:gosec // before 2106
	o := order{origin: chain, destination: chain, StandardOrder: contracts.StandardOrder{
		User: user, Nonce: big.NewInt(time.Now().UnixNano()), OriginChainId: big.NewInt(chainIDs[chain]),
		Expires: deadline + 15, FillDeadline: deadline, InputOracle: outputSettler, Inputs: [][2]*big.Int{{token.Big(), big.NewInt(1)}},
		Outputs: []contracts.MandateOutput{{
			Oracle: contracts.Word(outputSettler), Settler: contracts.Word(outputSettler), ChainId: big.NewInt(chainIDs[chain]),
			Token: contracts.Word(tWETH), Amount: big.NewInt(1e12), Recipient: contracts.Word(user),
		}},
	}}
	o.id = call[[32]byte](t, shared, chain, inputSettler, main.InputSettler, "orderIdentifier", o.StandardOrder)
	return o
}

func (o order) authorization() apitypes.TypedData {
	return apitypes.TypedData{
		Types: authorizationTypes, PrimaryType: "ReceiveWithAuthorization",
		Domain: apitypes.TypedDataDomain{
			Name: "Test Euro Coin", Version: "2", ChainId: (*math.HexOrDecimal256)(o.OriginChainId), VerifyingContract: tEURC.Hex(),
		},
		Message: apitypes.TypedDataMessage{
			"from": o.User.Hex(), "to": inputSettler.Hex(), "value": o.Inputs[0][1].String(), "validAfter": "0",
			"validBefore": fmt.Sprint(o.FillDeadline), "nonce": o.id.Hex(),
		},
	}
}

func (o order) permit() apitypes.TypedData {
	out := o.Outputs[0]
	return apitypes.TypedData{
		Types: permit2Types, PrimaryType: "PermitBatchWitnessTransferFrom",
		Domain: apitypes.TypedDataDomain{Name: "Permit2", ChainId: (*math.HexOrDecimal256)(o.OriginChainId), VerifyingContract: main.Permit2.Hex()},
		Message: apitypes.TypedDataMessage{
			"permitted": []any{map[string]any{"token": common.BigToAddress(o.Inputs[0][0]).Hex(), "amount": o.Inputs[0][1].String()}},
			"spender":   inputSettler.Hex(), "nonce": o.Nonce.String(), "deadline": fmt.Sprint(o.FillDeadline),
			"witness": map[string]any{
				"user": o.User.Hex(), "expires": fmt.Sprint(o.Expires), "inputOracle": o.InputOracle.Hex(),
				"outputs": []any{map[string]any{
					"oracle": hexutil.Encode(out.Oracle[:]), "settler": hexutil.Encode(out.Settler[:]), "chainId": out.ChainId.String(),
					"token": hexutil.Encode(out.Token[:]), "amount": out.Amount.String(), "recipient": hexutil.Encode(out.Recipient[:]),
					"callbackData": "0x", "context": "0x",
				}},
			},
		},
	}
}

func domainSeparator(t *testing.T, domain apitypes.TypedDataDomain) [32]byte {
	t.Helper()
	typed := apitypes.TypedData{Types: authorizationTypes, Domain: domain}
	hash, err := typed.HashStruct("EIP712Domain", domain.Map())
	if err != nil {
		t.Fatal(err)
	}
	return [32]byte(hash)
}
