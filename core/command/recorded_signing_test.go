package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"intents.internal/core/rpc/rpctest"
)

// recordedChain are the contracts of a recorded chain and what they have answered to the probes of a check.
type recordedChain struct {
	Chain struct {
		ChainID       int64
		Permit2       common.Address
		Settlers      map[string]common.Address
		OutputSettler common.Address
		Oracle        common.Address
		USD6          common.Address
		FiatTokenV2_2 common.Address
		WETH9         common.Address
		FeeToken      common.Address
		VRSToken      common.Address `json:"vrsToken"`
	}
	Types  map[string]apitypes.Types
	Probes []recordedProbe
	Cases  []struct {
		Name  string
		Steps []struct{ Revert hexutil.Bytes }
	}
}

type recordedProbe struct {
	Settler, Witness, Token, Probe string
	To                             common.Address
	Data                           hexutil.Bytes
	Answer                         string
	Revert                         hexutil.Bytes
}

func (p recordedProbe) name() string {
	return strings.Join([]string{p.Settler, p.Witness, p.Token, p.Probe}, " ")
}

func (p recordedProbe) result() ([]byte, error) {
	if p.Answer == "success" {
		return nil, nil
	}
	return nil, rpctest.Revert(p.Revert)
}

var readRecordedChain = sync.OnceValues(func() (r *recordedChain, err error) {
	text, err := os.ReadFile("../transfer/testdata/recorded_gasless.json")
	if err != nil {
		return nil, err
	}
	return r, json.Unmarshal(text, &r)
})

func recorded(t *testing.T) *recordedChain {
	t.Helper()
	r, err := readRecordedChain()
	if err != nil || len(r.Probes) != 19 {
		t.Fatalf("the recorded chain: %v", err)
	}
	return r
}

// find is the result of the recorded probe of these values.
func (r *recordedChain) find(settler, witness, token, probe string) ([]byte, error) {
	for _, p := range r.Probes {
		if p.Settler == settler && p.Witness == witness && p.Token == token && p.Probe == probe {
			return p.result()
		}
	}
	return nil, fmt.Errorf("nothing is recorded of %q", []string{settler, witness, token, probe})
}

// revert is the error of the only step of a recorded case.
func (r *recordedChain) revert(name string) error {
	for _, c := range r.Cases {
		if c.Name == name {
			return rpctest.Revert(c.Steps[0].Revert)
		}
	}
	return fmt.Errorf("no case is %q", name)
}

// The selectors that checks of signing call.
var (
	openFor         = rpctest.Selector{0x49, 0x92, 0x70, 0x74}
	receiveBytes    = rpctest.Selector{0x88, 0xb7, 0xab, 0x63}
	receiveVRS      = rpctest.Selector{0xef, 0x55, 0xbe, 0xc6}
	domainSeparator = rpctest.NewSelector("DOMAIN_SEPARATOR()")
	permitNonces    = rpctest.NewSelector("nonces(address)")
)

const gaslessABI = `[{"type":"function","name":"openFor","inputs":[{"name":"order","type":"tuple","components":[
	{"name":"user","type":"address"},{"name":"nonce","type":"uint256"},{"name":"originChainId","type":"uint256"},{"name":"expires","type":"uint32"},
	{"name":"fillDeadline","type":"uint32"},{"name":"inputOracle","type":"address"},{"name":"inputs","type":"uint256[2][]"},
	{"name":"outputs","type":"tuple[]","components":[{"name":"oracle","type":"bytes32"},{"name":"settler","type":"bytes32"},{"name":"chainId","type":"uint256"},
	{"name":"token","type":"bytes32"},{"name":"amount","type":"uint256"},{"name":"recipient","type":"bytes32"},{"name":"callbackData","type":"bytes"},
	{"name":"context","type":"bytes"}]}]},{"name":"sponsor","type":"address"},{"name":"signature","type":"bytes"}]},
	{"type":"function","name":"receiveBytes","inputs":[{"type":"address"},{"type":"address"},{"type":"uint256"},{"type":"uint256"},{"type":"uint256"},
	{"type":"bytes32"},{"type":"bytes"}]},
	{"type":"function","name":"receiveVRS","inputs":[{"type":"address"},{"type":"address"},{"type":"uint256"},{"type":"uint256"},{"type":"uint256"},
	{"type":"bytes32"},{"type":"uint8"},{"type":"bytes32"},{"type":"bytes32"}]}]`

var gasless = sync.OnceValues(func() (abi.ABI, error) { return abi.JSON(strings.NewReader(gaslessABI)) })

func arguments(function string, data []byte) ([]any, error) {
	parsed, err := gasless()
	if err != nil {
		return nil, err
	}
	return parsed.Methods[function].Inputs.Unpack(data[len(rpctest.Selector{}):])
}

// signedBy reports whether an account has signed typed data, by go-ethereum.
func signedBy(account common.Address, data apitypes.TypedData, signature []byte) (bool, error) {
	digest, _, err := apitypes.TypedDataAndHash(data)
	if err != nil || len(signature) != crypto.SignatureLength {
		return false, err
	}
	signature = slices.Clone(signature)
	signature[crypto.RecoveryIDOffset] -= 27
	key, err := crypto.SigToPub(digest, signature)
	return err == nil && crypto.PubkeyToAddress(*key) == account, nil
}

// typedData are data of one of the recorded types; the domain's types are those of its members.
func (r *recordedChain) typedData(kind, primary string, domain apitypes.TypedDataDomain, message apitypes.TypedDataMessage) apitypes.TypedData {
	types := apitypes.Types{"EIP712Domain": {{Name: "name", Type: "string"}}}
	if domain.Version != "" {
		types["EIP712Domain"] = append(types["EIP712Domain"], apitypes.Type{Name: "version", Type: "string"})
	}
	types["EIP712Domain"] = append(types["EIP712Domain"],
		apitypes.Type{Name: "chainId", Type: "uint256"}, apitypes.Type{Name: "verifyingContract", Type: "address"})
	maps.Copy(types, r.Types[kind])
	return apitypes.TypedData{Types: types, PrimaryType: primary, Domain: domain, Message: message}
}

type calledOrder struct {
	User          common.Address
	Nonce         *big.Int
	OriginChainId *big.Int // the decoder spells chainId so
	Expires       uint32
	FillDeadline  uint32
	InputOracle   common.Address
	Inputs        [][2]*big.Int
	Outputs       []struct {
		Oracle, Settler       [32]byte
		ChainId               *big.Int
		Token                 [32]byte
		Amount                *big.Int
		Recipient             [32]byte
		CallbackData, Context []byte
	}
}

// permit is what the order's user signs for Permit2, with one of the recorded types.
func (r *recordedChain) permit(o calledOrder, settler common.Address, kind string) apitypes.TypedData {
	var permitted, outputs []any
	for _, in := range o.Inputs {
		permitted = append(permitted, map[string]any{"token": common.BigToAddress(in[0]).Hex(), "amount": in[1].String()})
	}
	for _, out := range o.Outputs {
		outputs = append(outputs, map[string]any{
			"oracle": hexutil.Encode(out.Oracle[:]), "settler": hexutil.Encode(out.Settler[:]), "chainId": out.ChainId.String(),
			"token": hexutil.Encode(out.Token[:]), "amount": out.Amount.String(), "recipient": hexutil.Encode(out.Recipient[:]),
			"callbackData": hexutil.Encode(out.CallbackData), "context": hexutil.Encode(out.Context),
		})
	}
	witness := map[string]any{"expires": fmt.Sprint(o.Expires), "inputOracle": o.InputOracle.Hex(), "outputs": outputs}
	if kind == "permit2" {
		witness["user"] = o.User.Hex()
	}
	domain := apitypes.TypedDataDomain{Name: "Permit2", ChainId: math.NewHexOrDecimal256(r.Chain.ChainID), VerifyingContract: r.Chain.Permit2.Hex()}
	return r.typedData(kind, "PermitBatchWitnessTransferFrom", domain, apitypes.TypedDataMessage{
		"permitted": permitted, "spender": settler.Hex(), "nonce": o.Nonce.String(), "deadline": fmt.Sprint(o.FillDeadline), "witness": witness,
	})
}

// settler answers openFor as a recorded settler has answered the probe that is signed alike.
func (r *recordedChain) settler(name string) rpctest.Function {
	return func(c rpctest.Call) ([]byte, error) {
		given, err := arguments("openFor", c.Data)
		if err != nil {
			return nil, err
		}
		order := *abi.ConvertType(given[0], new(calledOrder)).(*calledOrder)
		signature := given[2].([]byte)
		token := common.BigToAddress(order.Inputs[0][0])
		switch {
		case given[1] != order.User || order.OriginChainId.Int64() != r.Chain.ChainID:
			return nil, fmt.Errorf("sponsor %v, order %+v", given[1], order)
		case bytes.Equal(signature, []byte{1}) && token == r.Chain.WETH9:
			return r.find(name, "", "", "an unpaid 3009 order of the wrapped native token")
		case bytes.Equal(signature, []byte{1}):
			return nil, r.revert("3009: wrong signer")
		}
		for kind, witness := range map[string]string{"permit2": "with user", "permit2WithoutUser": "without user"} {
			signed, err := signedBy(order.User, r.permit(order, r.Chain.Settlers[name], kind), signature[1:])
			if err != nil {
				return nil, err
			}
			if signature[0] == 0 && signed {
				return r.find(name, witness, "", "")
			}
		}
		return nil, r.revert("permit2: wrong signer")
	}
}

// authorization answers a receiveWithAuthorization of nothing as a recorded token has answered the one that is signed alike in this domain.
func (r *recordedChain) authorization(token, function string, domain apitypes.TypedDataDomain) rpctest.Function {
	return func(c rpctest.Call) ([]byte, error) {
		given, err := arguments(function, c.Data)
		if err != nil {
			return nil, err
		}
		from, to, nonce := given[0].(common.Address), given[1].(common.Address), given[5].([32]byte)
		if to != c.From || given[2].(*big.Int).Sign() != 0 {
			return nil, fmt.Errorf("an authorization of %v to %s, sent by %s", given[2], to, c.From)
		}
		signature, ok := given[6].([]byte)
		if !ok {
			v, first, second := given[6].(uint8), given[7].([32]byte), given[8].([32]byte)
			signature = append(slices.Concat(first[:], second[:]), v)
		}
		signed, err := signedBy(from, r.typedData("receiveWithAuthorization", "ReceiveWithAuthorization", domain, apitypes.TypedDataMessage{
			"from": from.Hex(), "to": to.Hex(), "value": "0", "validAfter": given[3].(*big.Int).String(),
			"validBefore": given[4].(*big.Int).String(), "nonce": hexutil.Encode(nonce[:]),
		}), signature)
		if err != nil {
			return nil, err
		}
		return r.find("", "", token, "a transfer of 0, "+map[bool]string{true: "rightly signed", false: "wrongly signed"}[signed])
	}
}

// serve has a chain answer as the recorded one.
func (r *recordedChain) serve(t *testing.T, served *rpctest.Chain) {
	t.Helper()
	served.SetCode(r.Chain.Permit2, []byte{1})
	for name, address := range r.Chain.Settlers {
		served.SetFunction(address, openFor, r.settler(name))
	}
	dollar, old := r.domain("USD Coin", "2", r.Chain.FiatTokenV2_2), r.domain("Old dollar", "1", r.Chain.VRSToken)
	served.SetFunction(r.Chain.FiatTokenV2_2, receiveBytes, r.authorization("FiatTokenV2_2", "receiveBytes", dollar))
	served.SetFunction(r.Chain.FiatTokenV2_2, receiveVRS, r.authorization("FiatTokenV2_2", "receiveVRS", dollar))
	served.SetFunction(r.Chain.VRSToken, receiveBytes, r.authorization("v, r, s only", "receiveBytes", old))
	// The recording has no probe of the form with v, r and s, which all tokens check alike.
	served.SetFunction(r.Chain.VRSToken, receiveVRS, r.authorization("FiatTokenV2_2", "receiveVRS", old))
	served.SetFunction(r.Chain.WETH9, receiveBytes, r.authorization("WETH9", "receiveBytes", dollar))
	served.SetFunction(r.Chain.FeeToken, receiveBytes, r.authorization("ERC-20 without ERC-3009", "receiveBytes", dollar))
	served.SetFunction(r.Chain.FeeToken, receiveVRS, r.authorization("ERC-20 without ERC-3009", "receiveBytes", dollar))
	for _, d := range []apitypes.TypedDataDomain{dollar, old} {
		data := r.typedData("permit", "Permit", d, nil)
		separator, err := data.HashStruct("EIP712Domain", d.Map())
		if err != nil {
			t.Fatal(err)
		}
		answer(served, d.VerifyingContract, domainSeparator, separator)
		answer(served, d.VerifyingContract, permitNonces, rpctest.Word(0))
	}
}

func (r *recordedChain) domain(name, version string, contract common.Address) apitypes.TypedDataDomain {
	return apitypes.TypedDataDomain{Name: name, Version: version, ChainId: math.NewHexOrDecimal256(r.Chain.ChainID), VerifyingContract: contract.Hex()}
}

// The chain that is served answers each recorded probe as it is recorded, and the signatures in these are what it takes them for.
func TestRecordedChain(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	domain := r.domain("USD Coin", "2", r.Chain.FiatTokenV2_2)
	tokens := map[string]rpctest.Function{
		"FiatTokenV2_2":               r.authorization("FiatTokenV2_2", "receiveBytes", domain),
		"FiatTokenV2_2, another name": r.authorization("FiatTokenV2_2", "receiveBytes", domain),
		"v, r, s only":                r.authorization("v, r, s only", "receiveBytes", r.domain("Old dollar", "1", r.Chain.VRSToken)),
		"WETH9":                       r.authorization("WETH9", "receiveBytes", domain),
		"ERC-20 without ERC-3009":     r.authorization("ERC-20 without ERC-3009", "receiveBytes", domain),
	}
	for _, p := range r.Probes {
		call := rpctest.Call{From: r.Chain.Settlers["head"], To: p.To, Data: p.Data}
		function := tokens[p.Token]
		if p.Settler != "" {
			function = r.settler(p.Settler)
		}
		got, gotErr := function(call)
		want, wantErr := p.result()
		if !bytes.Equal(got, want) || fmt.Sprintf("%#v", gotErr) != fmt.Sprintf("%#v", wantErr) {
			t.Errorf("%s: %x, %#v; recorded %x, %#v", p.name(), got, gotErr, want, wantErr)
		}
	}
}
