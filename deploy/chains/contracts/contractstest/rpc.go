package contractstest

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/ethereum/go-ethereum/rpc"
)

// request and response are JSON-RPC 2.0 messages.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params []any           `json:"params"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// ServeHTTP handles single JSON-RPC requests and produces a block for each transaction. The backend's own server would need a
// port that is chosen before it listens.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.Down.Load() {
		http.Error(w, "the chain is down", http.StatusServiceUnavailable)
		return
	}
	var asked request
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := response{Version: "2.0", ID: asked.ID}
	if err := c.node.CallContext(r.Context(), &answer.Result, asked.Method, asked.Params...); err != nil {
		answer.Error = toRPCError(err)
	} else if asked.Method == "eth_sendRawTransaction" {
		c.mu.Lock()
		c.backend.Commit()
		c.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client has disconnected
}

func toRPCError(err error) *rpcError {
	answer := &rpcError{Code: -32000, Message: err.Error()}
	if coded, ok := errors.AsType[rpc.Error](err); ok {
		answer.Code = coded.ErrorCode()
	}
	if withData, ok := errors.AsType[rpc.DataError](err); ok {
		answer.Data = withData.ErrorData()
	}
	return answer
}
