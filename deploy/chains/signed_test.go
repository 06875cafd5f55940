package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
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
			{Name: "from", Type: "address"},
			{Name: "to", Type: "address"},
			{Name: "value", Type: "uint256"},
			{Name: "validAfter", Type: "uint256"},
			{Name: "validBefore", Type: "uint256"},
			{Name: "nonce", Type: "bytes32"},
		},
	}
	// permit2Types are those of Permit2's batch transfer with an order as its witness.
	permit2Types = apitypes.Types{
		"EIP712Domain": domainType,
		"PermitBatchWitnessTransferFrom": {
			{Name: "permitted", Type: "TokenPermissions[]"},
			{Name: "spender", Type: "address"},
			{Name: "nonce", Type: "uint256"},
			{Name: "deadline", Type: "uint256"},
			{Name: "witness", Type: "Permit2Witness"},
		},
		"TokenPermissions": {{Name: "token", Type: "address"}, {Name: "amount", Type: "uint256"}},
		"Permit2Witness": {
			{Name: "user", Type: "address"},
			{Name: "expires", Type: "uint32"},
			{Name: "inputOracle", Type: "address"},
			{Name: "outputs", Type: "MandateOutput[]"},
		},
		"MandateOutput": {
			{Name: "oracle", Type: "bytes32"},
			{Name: "settler", Type: "bytes32"},
			{Name: "chainId", Type: "uint256"},
			{Name: "token", Type: "bytes32"},
			{Name: "amount", Type: "uint256"},
			{Name: "recipient", Type: "bytes32"},
			{Name: "callbackData", Type: "bytes"},
			{Name: "context", Type: "bytes"},
		},
	}
)

// A development account signs an order as wallets do, and another opens it: with an authorization of tEURC, and by Permit2, which has its own
// domain on each chain.
func TestOpenFor(t *testing.T) {
	t.Parallel()
	user, relayer := newAccount(t, 3), newAccount(t, 4)
	for _, chain := range []string{chainA, chainB} {
		mined(t, shared, chain, send(t, shared, chain, user, tUSDC, pack(t, main.Token, "approve", main.Permit2, big.NewInt(5e6))))
		authorized, permitted := signable(t, shared, user, chain, tEURC), signable(t, shared, user, chain, tUSDC)
		for o, data := range map[*order]hexutil.Bytes{
			&authorized: authorized.openFor(t, shared, 1, authorized.authorization()), &permitted: permitted.openFor(t, shared, 0, permitted.permit()),
		} {
			token := common.BigToAddress(o.Inputs[0][0])
			had := balance(t, shared, chain, token, user)
			mined(t, shared, chain, send(t, shared, chain, relayer, inputSettler, data))
			o.expect(t, shared, deposited)
			if got := new(big.Int).Sub(had, balance(t, shared, chain, token, user)); got.Int64() != 5e6 {
				t.Errorf("%s of %s on %s are taken", got, token, chain)
			}
		}
	}
}

// The solver opens bridges that their users have only signed, once that is done and would not revert, and then fills and claims them. It reports the
// transaction. An intent whose reference says so is left to others.
func TestSolver_Relay(t *testing.T) {
	t.Parallel()
	events, one, two, asked, reported := make(chan string, 1), make(chan string, 2), make(chan string, 1), make(chan bool, 100), make(chan string, 2)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /v2/events":
			select {
			case page := <-events:
				fmt.Fprintf(w, `{"events":[%s],"next":"cursor"}`, page)
			case <-r.Context().Done():
			}
		case "GET /v2/transfers/one/relay":
			answer := <-one
			if strings.Contains(answer, "code") {
				w.WriteHeader(http.StatusConflict)
			}
			fmt.Fprint(w, answer)
		case "GET /v2/transfers/two/relay":
			answer := <-two
			two <- answer
			fmt.Fprint(w, answer)
			asked <- true
		case "POST /v2/transfers/one/transaction", "POST /v2/transfers/two/transaction":
			body, _ := io.ReadAll(r.Body)
			fmt.Fprint(w, `{}`)
			reported <- string(body)
		default:
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
	}))
	t.Cleanup(gateway.Close)
	p := start(t, t.TempDir(), "-gateway", gateway.URL)
	user := newAccount(t, 0)
	authorized, permitted := signable(t, p, user, chainA, tEURC), signable(t, p, user, chainA, tUSDC)
	const tx = `{"tx":{"chainId":31337,"to":%q,"data":%q,"value":"0"}}`
	one <- `{"code":"NOT_SIGNED","message":"not yet"}`
	one <- fmt.Sprintf(tx, inputSettler, authorized.openFor(t, p, 1, authorized.authorization()))
	two <- fmt.Sprintf(tx, inputSettler, permitted.openFor(t, p, 0, permitted.permit()))
	const event = `{"type":"transfer.created","data":{"id":%q,"orderId":%q,"status":"created","signing":%q,"reference":%q}}`
	events <- strings.Join([]string{
		fmt.Sprintf(event, "own", common.Hash{}, "erc3009", "relay-myself"),
		fmt.Sprintf(event, "one", authorized.id, "erc3009", ""), fmt.Sprintf(event, "two", permitted.id, "permit2", ""),
	}, ",")
	<-asked // without an allowance it would revert
	mined(t, p, chainA, send(t, p, chainA, user, tUSDC, pack(t, main.Token, "approve", main.Permit2, big.NewInt(5e6))))
	authorized.awaitClaimed(t, p)
	permitted.awaitClaimed(t, p)
	for range 2 {
		var report struct{ Hash common.Hash }
		if err := json.Unmarshal([]byte(<-reported), &report); err != nil {
			t.Fatal(err)
		}
		if receipt := request[*types.Receipt](t, p, chainA, "eth_getTransactionReceipt", report.Hash); receipt == nil || len(receipt.Logs) < 2 {
			t.Errorf("the receipt of the reported transaction is %+v", receipt) // Transfer and Open are among the logs
		}
	}
}

// signable returns a bridge of 5 of a token to 4 tUSDC, which is not open.
func signable(t *testing.T, p *program, user common.Address, origin string, token common.Address) order {
	t.Helper()
	destination := map[string]string{chainA: chainB, chainB: chainA}[origin]
	deadline := uint32(time.Now().Add(time.Hour).Unix())
	o := order{origin: origin, destination: destination, StandardOrder: contracts.StandardOrder{
		User: user, Nonce: big.NewInt(time.Now().UnixNano()), OriginChainId: big.NewInt(chainIDs[origin]),
		Expires: deadline + 15, FillDeadline: deadline, InputOracle: oracle, Inputs: [][2]*big.Int{{token.Big(), big.NewInt(5e6)}},
		Outputs: []contracts.MandateOutput{{
			Oracle: contracts.Word(oracle), Settler: contracts.Word(outputSettler), ChainId: big.NewInt(chainIDs[destination]),
			Token: contracts.Word(tUSDC), Amount: big.NewInt(4e6), Recipient: contracts.Word(user),
		}},
	}}
	o.id = call[[32]byte](t, p, origin, inputSettler, main.InputSettler, "orderIdentifier", o.StandardOrder)
	return o
}

// openFor is the data by which anybody opens the order with a signature of its user.
func (o order) openFor(t *testing.T, p *program, kind byte, typed apitypes.TypedData) hexutil.Bytes {
	t.Helper()
	signature := request[hexutil.Bytes](t, p, o.origin, "eth_signTypedData_v4", o.User, typed)
	return pack(t, main.InputSettler, "openFor", o.StandardOrder, o.User, append([]byte{kind}, signature...))
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
