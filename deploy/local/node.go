package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// errNodeDown is returned if a node does not answer JSON-RPC.
var errNodeDown = errors.New("the node does not answer")

// errReverted is returned if a transaction was included in a block and reverted.
var errReverted = errors.New("the transaction was reverted")

const (
	receiptTimeout = time.Minute
	receiptPoll    = 200 * time.Millisecond
)

// rpcError is the error of a JSON-RPC response.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// node is the JSON-RPC of a local chain, whose development accounts need no signature.
type node struct {
	url  string
	http *http.Client
}

// transaction is the argument of eth_sendTransaction; the node chooses the other fields.
type transaction struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Value string `json:"value"`
	Data  string `json:"data"`
}

// send sends a transaction and returns its hash once it is in a block.
func (n node) send(ctx context.Context, tx transaction) (hash string, err error) {
	if err := n.call(ctx, &hash, "eth_sendTransaction", tx); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, receiptTimeout, fmt.Errorf("%s is in no block after %s", hash, receiptTimeout))
	defer cancel()
	ticker := time.NewTicker(receiptPoll)
	defer ticker.Stop()
	for {
		var receipt *struct {
			Status string `json:"status"`
		}
		if err := n.call(ctx, &receipt, "eth_getTransactionReceipt", hash); err != nil {
			return hash, errors.Join(err, context.Cause(ctx))
		}
		if receipt != nil && receipt.Status != "0x1" {
			return hash, errReverted
		}
		if receipt != nil {
			return hash, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return hash, context.Cause(ctx)
		}
	}
}

// call decodes the result of a method into result. An error response is an *rpcError.
func (n node) call(ctx context.Context, result any, method string, params ...any) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := n.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errNodeDown, err)
	}
	defer response.Body.Close()
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *rpcError       `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: read the node's answer: %w", method, err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return json.Unmarshal(answer.Result, result)
}
