package rpc

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/outbound"
)

type wireRequest struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

type wireResponse struct {
	ID     jsontext.Value `json:"id"`
	Result jsontext.Value `json:"result"`
	Error  jsontext.Value `json:"error"`
}

// encode writes an object for one call and an array for more. The ids are unique, so that a late response to an earlier request
// is detected.
func (p *Provider) encode(calls []*call) ([]byte, error) {
	wire := make([]wireRequest, len(calls))
	for i, c := range calls {
		c.id = p.lastID.Add(1)
		wire[i] = wireRequest{Version: "2.0", ID: c.id, Method: c.method, Params: c.params}
		if c.params == nil {
			wire[i].Params = []any{}
		}
	}
	var body any = wire
	if len(wire) == 1 {
		body = wire[0]
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return text, nil
}

// decode sets each call's result or error, one response after the other, so that a body of many small elements needs no memory. The
// returned error is of the complete response: it is not JSON-RPC, does not answer every call exactly once, or is one error for all
// calls, which some nodes return for a batch.
func (p *Provider) decode(body io.Reader, calls []*call) error {
	// Nodes may quote the return data of a contract, which can be any bytes.
	decoder := jsontext.NewDecoder(body, jsontext.AllowInvalidUTF8(true))
	answered := answers{Provider: p, calls: calls, waiting: make(map[uint64]*call, len(calls))}
	for _, c := range calls {
		answered.waiting[c.id] = c
	}
	if err := answered.read(decoder); err != nil {
		return err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return p.malformed(errors.New("more follows the answer"))
	}
	if left := len(answered.waiting); left > 0 {
		return p.malformed(fmt.Errorf("%d of %d calls have no answer", left, len(calls)))
	}
	return nil
}

// answers gives the responses of one body to their calls.
type answers struct {
	*Provider

	calls   []*call
	waiting map[uint64]*call
}

// read reads an array, or the single object that answers one call or rejects a batch.
func (a *answers) read(decoder *jsontext.Decoder) error {
	batch := len(a.calls) > 1
	if decoder.PeekKind() == '[' {
		if !batch {
			return a.malformed(errors.New("a list answers a single call"))
		}
		err := outbound.DecodeList(decoder, len(a.calls), func() error {
			var r wireResponse
			if err := json.UnmarshalDecode(decoder, &r); err != nil {
				return a.malformed(err)
			}
			return a.take(r)
		})
		if _, ok := errors.AsType[*jsontext.SyntacticError](err); ok || errors.Is(err, outbound.ErrTooManyElements) {
			return a.malformed(err)
		}
		return err
	}
	var one wireResponse
	if err := json.UnmarshalDecode(decoder, &one); err != nil {
		return a.malformed(err)
	}
	if batch {
		one.ID = nil
		if !isSet(one.Error) {
			return a.malformed(errors.New("an object answers a batch"))
		}
	}
	return a.take(one)
}

// take gives a response to its call.
func (a *answers) take(r wireResponse) error {
	var id uint64
	unnamed := len(r.ID) == 0 || r.ID.Kind() == 'n'
	if unnamed && isSet(r.Error) { // of the whole body: it may reject a batch and not the range of a call in it
		return a.nodeError(&call{method: a.calls[0].method}, r.Error)
	}
	if unnamed || json.Unmarshal(r.ID, &id) != nil || a.waiting[id] == nil {
		return a.malformed(errors.New("an id is missing, unknown or there twice"))
	}
	c := a.waiting[id]
	delete(a.waiting, id)
	c.bytes = len(r.Result)
	c.err = a.finish(c, r)
	if errors.Is(c.err, errBatch) && len(a.calls) > 1 {
		return c.err // go-ethereum names the first call in the error of a batch
	}
	return nil
}

func isSet(text jsontext.Value) bool { return len(text) > 0 && text.Kind() != 'n' }

// finish returns a call's error, nil if it has a result.
func (p *Provider) finish(c *call, r wireResponse) error {
	switch {
	case isSet(r.Error) && isSet(r.Result):
		return p.malformed(errors.New("both a result and an error"))
	case isSet(r.Error):
		return p.nodeError(c, r.Error)
	case len(r.Result) == 0:
		return p.malformed(errors.New("neither a result nor an error"))
	}
	err := c.decode(r.Result)
	if err == nil || errors.Is(err, ErrMissing) {
		return err
	}
	return p.malformed(err)
}

func (p *Provider) malformed(err error) error {
	return &failure{kind: ErrMalformed, text: p.clean(err.Error())}
}

// nodeError parses an error object. Gateways in front of nodes return a plain text.
func (p *Provider) nodeError(c *call, text jsontext.Value) error {
	var wire struct {
		Code    int64          `json:"code"`
		Message string         `json:"message"`
		Data    jsontext.Value `json:"data"`
	}
	tolerant := jsontext.AllowInvalidUTF8(true)
	if text.Kind() == '"' {
		if err := json.Unmarshal(text, &wire.Message, tolerant); err != nil {
			return p.malformed(err)
		}
	} else if err := json.Unmarshal(text, &wire, tolerant); err != nil {
		return p.malformed(err)
	}
	// Tenderly puts the reason into data.
	details := wire.Message + " " + string(wire.Data[:min(len(wire.Data), 1024)])
	return &Error{
		Code: wire.Code, Message: p.clean(wire.Message), Data: revertData(wire.Data), kind: errorKind(c, wire.Code, details),
	}
}

// revertData returns the data of a reverted call. Most nodes put it into data, some into an object or after a word there.
func revertData(text jsontext.Value) []byte {
	var object struct {
		Data jsontext.Value `json:"data"`
	}
	if text.Kind() == '{' && json.Unmarshal(text, &object) == nil {
		text = object.Data
	}
	var hex string
	if text.Kind() != '"' || json.Unmarshal(text, &hex) != nil {
		return nil
	}
	decoded, err := hexutil.Decode(strings.TrimPrefix(hex, "Reverted "))
	if err != nil {
		return nil
	}
	return decoded
}
