package transfer_test

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// gaslessRecording is testdata/recorded_gasless.json: what settlers, Permit2 and tokens answer to signed orders and transfers. Its member about
// says how it is read.
type gaslessRecording struct {
	Chain struct {
		ChainID       uint64
		Settlers      map[string]common.Address
		USD6          common.Address
		FiatTokenV2_2 common.Address
		WETH9         common.Address
		VRSToken      common.Address `json:"vrsToken"`
	}
	TypeStrings map[string]struct{ TypeHash common.Hash }
	Topics      map[common.Hash]string
	Errors      map[string]string
	Cases       []gaslessCase
	Transfers   []gaslessCase
}

type gaslessCase struct {
	Name, Settler string
	OrderID       common.Hash
	Order         recordedOrder
	Encoded       hexutil.Bytes
	TypedData     *recordedTypedData
	Digest        common.Hash
	Signer        common.Address
	Sponsor       string
	Signature     hexutil.Bytes
	Calldata      hexutil.Bytes
	Steps         []gaslessStep
}

// recordedTypedData has the name of its types in place of them.
type recordedTypedData struct {
	Types  string
	Domain struct {
		Name, Version     string
		ChainID           uint64
		VerifyingContract common.Address
	}
	PrimaryType string
	Message     json.RawMessage
}

type gaslessStep struct {
	Step, From string
	To         common.Address
	Data       string
	Time       int64
	Status     int
	Error      string
	Revert     hexutil.Bytes
	Logs       []recordedLog
	// After is what the contracts say afterwards, nil where the step has changed nothing.
	After *struct{ SettlerBalance string }
}

var readGasless = sync.OnceValues(func() (r gaslessRecording, err error) {
	text, err := os.ReadFile("testdata/recorded_gasless.json")
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
})

func recordedGasless(t *testing.T) gaslessRecording {
	t.Helper()
	r, err := readGasless()
	if err != nil || len(r.Cases) != 75 || len(r.Transfers) != 7 {
		t.Fatalf("%d cases, %d transfers: %v", len(r.Cases), len(r.Transfers), err)
	}
	return r
}

// byUser reports whether the case calls openFor with the order's user as sponsor and a signature with its type byte.
func (c gaslessCase) byUser() bool {
	return c.Sponsor == "" && c.TypedData != nil && len(c.Signature) > 0 && c.Signature[0] <= 1 && strings.HasPrefix(c.Calldata.String(), "0x49927074")
}
