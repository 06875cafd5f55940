package anvil_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/loadtest/anvil"
)

// bytes puts the case's encoded order and first output into recorded data.
func (w *replay) bytes(t *testing.T, c recordedCase, data string) []byte {
	t.Helper()
	at, o := w.chains[31337], c.order()
	encoded := common.Bytes2Hex(at.input.Pack(t, "open", o)[4:])
	output := common.Bytes2Hex(at.output.Pack(t, "getFillRecord", c.OrderID, o.Outputs[0])[4+64:]) // after the id and the offset
	decoded, err := hexutil.Decode(strings.NewReplacer("{encoded}", encoded, "{order}", encoded[64:], "{output}", output).Replace(data))
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return decoded
}

func (w *replay) recordedLogs(t *testing.T, c recordedCase, step recordedStep) (all []anvil.Log) {
	t.Helper()
	for _, l := range step.Logs {
		all = append(all, anvil.Log{Address: l.Address, Topics: l.Topics, Data: w.bytes(t, c, l.Data)})
	}
	return all
}

// data is the input of a step's transaction. Of the fills of other outputs the recording has only the logs.
func (w *replay) data(t *testing.T, c recordedCase, step recordedStep) []byte {
	t.Helper()
	if step.Data != "" {
		return w.bytes(t, c, step.Data)
	}
	settler, output := w.chains[step.Chain].output, c.order().Outputs[0]
	filler := common.LeftPadBytes(w.accounts[step.From].Bytes(), 32)
	if len(step.Logs) > 0 {
		values, err := settler.ABI.Events["OutputFilled"].Inputs.NonIndexed().Unpack(w.bytes(t, c, step.Logs[0].Data))
		if err != nil {
			t.Fatalf("%s: %s: %v", c.Name, step.Step, err)
		}
		output = *abi.ConvertType(values[2], new(anvil.MandateOutput)).(*anvil.MandateOutput)
	}
	switch step.Step {
	case "fill, callbackData to a recipient without code":
		output.CallbackData = []byte{0x12, 0x34}
	case "fill, other chainId":
		output.ChainId = big.NewInt(31337)
	case "fill, other settler":
		output.Settler = common.BytesToHash(w.chains[31337].output.Address[:])
	case "fill, fillerData too short":
		filler = filler[1:]
	}
	return settler.Pack(t, "fill", c.OrderID, output, new(big.Int).SetUint64(uint64(c.Order.FillDeadline)), filler)
}
