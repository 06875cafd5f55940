package contracts

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// RevertData returns the data of a reverted call; ok is false for any other error, and if the node omits the data.
func RevertData(err error) (data []byte, ok bool) {
	withData, ok := errors.AsType[rpc.DataError](err)
	if !ok {
		return nil, false
	}
	text, ok := withData.ErrorData().(string)
	if !ok {
		return nil, false
	}
	data, err = hexutil.Decode(text)
	return data, err == nil
}

// ErrorName returns the name of the Solidity error that a call reverted with, or Error(…) with its text, or Panic(…) with its
// reason; it is empty if none of these contracts defines the error.
func ErrorName(data []byte) string {
	if reason, err := abi.UnpackRevert(data); err == nil {
		return fmt.Sprintf("Error(%q)", reason)
	}
	if len(data) < 4 {
		return ""
	}
	return errorNames()[[4]byte(data)]
}

// errorNames has the errors of all contracts by their selectors.
var errorNames = sync.OnceValue(func() map[[4]byte]string {
	names := map[[4]byte]string{}
	for _, name := range []string{"InputSettlerEscrow", "OutputSettlerSimple", "OwnedOracle", "Permit2", "TestToken", "SmartAccount"} {
		for _, e := range MustCompiled(name).ABI.Errors {
			names[[4]byte(e.ID[:4])] = e.Name
		}
	}
	return names
})
