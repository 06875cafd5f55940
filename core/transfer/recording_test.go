package transfer_test

import (
	"encoding/json"
	"math/big"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// recording is testdata/recorded_oif.json: what the contracts of the Open Intents Framework answer to orders.
type recording struct {
	Chains []struct {
		ChainID                    uint64
		InputSettler, NativeEscrow common.Address
	}
	Cases   []recordedCase
	Vectors []struct {
		Name    string
		Settler common.Address
		Order   recordedOrder
		Encoded hexutil.Bytes
		OrderID common.Hash
	}
	// Errors are the signatures of errors by selector.
	Errors map[string]string
}

type recordedCase struct {
	Name, Variant string
	OrderID       common.Hash
	Order         recordedOrder
	Encoded       hexutil.Bytes
	Steps         []recordedStep
}

type recordedStep struct {
	Step   string
	Chain  uint64
	From   string
	To     common.Address
	Data   string
	Status int
	Error  string
	Revert hexutil.Bytes
	// After is what the contracts say of the order afterwards, nil if it is as before.
	After *struct {
		OrderStatus transfer.OrderStatus
		FillRecord  []string // zero is "0"
	}
	Logs []recordedLog
}

type recordedLog struct {
	Address common.Address
	Topics  []common.Hash
	Data    string
}

// opens reports whether a step calls open on the order's source chain.
func (s recordedStep) opens(c recordedCase) bool {
	return strings.HasPrefix(s.Data, "0x7515fd56") && strconv.FormatUint(s.Chain, 10) == c.Order.OriginChainID
}

// recordedOrder is a StandardOrder with its numbers in decimal digits.
type recordedOrder struct {
	User                  common.Address
	Nonce, OriginChainID  string
	Expires, FillDeadline uint32
	InputOracle           common.Address
	Inputs                [][2]string
	Outputs               []struct {
		Oracle, Settler       common.Hash
		ChainID               string
		Token                 common.Hash
		Amount                string
		Recipient             common.Hash
		CallbackData, Context hexutil.Bytes
	}
}

var readRecording = sync.OnceValues(func() (r recording, err error) {
	text, err := os.ReadFile("testdata/recorded_oif.json")
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
})

func recorded(t *testing.T) recording {
	t.Helper()
	r, err := readRecording()
	if err != nil || len(r.Cases) < 48 || len(r.Vectors) != 2 || len(r.Errors) == 0 {
		t.Fatalf("%d cases, %d vectors: %v", len(r.Cases), len(r.Vectors), err)
	}
	return r
}

// settler is the input settler of a case, on its first chain.
func (r recording) settler(c recordedCase) common.Address {
	if c.Variant == "NativeEscrow" {
		return r.Chains[0].NativeEscrow
	}
	return r.Chains[0].InputSettler
}

// unfold replaces the placeholders in recorded data.
func (c recordedCase) unfold(data string) []byte {
	digits := common.Bytes2Hex
	if len(c.Encoded) > 0 {
		data = strings.NewReplacer("{encoded}", digits(c.Encoded), "{order}", digits(c.Encoded[32:])).Replace(data)
	}
	return common.FromHex(strings.ReplaceAll(data, "{output}", digits(encode(abi.Arguments{outputArgument}, c.Order.abi().Outputs[0])[32:])))
}

// logs are those of a step, in a block of its own with the step's number. The recording has the tokens' logs of some cases only: see deposit.
func (c recordedCase) logs(n int) []evm.Log {
	var logs []evm.Log
	for _, l := range append(c.deposit(n), c.Steps[n].Logs...) {
		logs = append(logs, evm.Log{
			Address: l.Address, Topics: l.Topics, Data: c.unfold(l.Data), Index: uint(len(logs)),
			BlockNumber: uint64(n), BlockHash: common.BigToHash(big.NewInt(int64(n))), TxHash: common.BigToHash(big.NewInt(int64(1000 + n))),
		})
	}
	return logs
}

// deposit is the Transfer to the input settler that a step of an ERC-20 input had first, where the recording leaves it out.
func (c recordedCase) deposit(n int) []recordedLog {
	logs, input := c.Steps[n].Logs, c.Order.Inputs[0]
	if len(logs) == 0 || logs[0].Topics[0] != event("Open(bytes32,"+orderType+")") || bigInt(input[0]).Sign() == 0 {
		return nil
	}
	return []recordedLog{{
		common.BigToAddress(bigInt(input[0])),
		[]common.Hash{event("Transfer(address,address,uint256)"), padded(c.Order.User.Hex()), padded(logs[0].Address.Hex())},
		common.BigToHash(bigInt(input[1])).Hex(),
	}}
}

func (c recordedCase) receipt(n int) evm.Receipt {
	return evm.Receipt{
		BlockNumber: uint64(n), BlockHash: common.BigToHash(big.NewInt(int64(n))), TxHash: common.BigToHash(big.NewInt(int64(1000 + n))),
		Succeeded: c.Steps[n].Status == 1, Logs: c.logs(n),
	}
}

// expressible reports whether the order is that of an intent: one output, and addresses of 20 bytes.
func (o recordedOrder) expressible() bool {
	return len(o.Outputs) == 1 && o.ours() && bigInt(o.Inputs[0][0]).BitLen() <= 160
}

// ours reports whether the first output is that of an intent: its bytes are empty.
func (o recordedOrder) ours() bool {
	return len(o.Outputs[0].CallbackData)+len(o.Outputs[0].Context) == 0
}

// intent is the intent of an order, without its id. What intents do not have, such as a context, is left out.
func (o recordedOrder) intent(settler common.Address) *transfer.Intent {
	number := func(digits string) caip.ChainID {
		n, _ := strconv.ParseUint(digits, 10, 64)
		return caip.EIP155Chain(n)
	}
	address := func(word common.Hash) string { return common.BytesToAddress(word[:]).Hex() }
	input, output := o.Inputs[0], o.Outputs[0]
	i := &transfer.Intent{
		ID: uuid.UUID(bigInt(o.Nonce).FillBytes(make([]byte, 16))), Type: transfer.Bridge, Status: transfer.Created,
		Source:      leg(number(o.OriginChainID), o.User.Hex(), address(common.BigToHash(bigInt(input[0]))), input[1]),
		Destination: leg(number(output.ChainID), address(output.Recipient), address(output.Token), output.Amount),
		Settlement: transfer.Settlement{
			Scheme: registry.StandardOrder, Deployment: "recorded", InputSettler: settler.Hex(), OutputSettler: address(output.Settler),
			InputOracle: o.InputOracle.Hex(), OutputOracle: address(output.Oracle), Expires: time.Unix(int64(o.Expires), 0),
		},
		Deadline: time.Unix(int64(o.FillDeadline), 0),
	}
	if o.OriginChainID == output.ChainID {
		i.Type = transfer.Swap
	}
	return i
}

// bigInt parses recorded decimal digits.
func bigInt(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		panic(digits + " is no number")
	}
	return n
}

// leg is one side of an intent. The zero address is the native token.
func leg(c caip.ChainID, account, tokenAddress, amount string) transfer.Leg {
	if tokenAddress == (common.Address{}).Hex() {
		tokenAddress = registry.NativeAddress
	}
	return transfer.Leg{
		Account: caip.AccountID{Chain: c, Address: account},
		Token:   caip.AccountID{Chain: c, Address: tokenAddress},
		Amount:  bigInt(amount),
	}
}
