package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

// Order is the StandardOrder of an intent (scheme oif-v1/StandardOrder). The field names are those of the ABI. It has one input and one
// output, whose callbackData and context are empty.
type Order struct {
	// InputSettler, User, InputOracle and Input.Token are EVM addresses in EIP-55 spelling. Those that a transfer does not have are zero.
	InputSettler          string
	User                  string
	Nonce                 *big.Int
	OriginChainID         uint64
	Expires, FillDeadline uint32
	InputOracle           string
	Input                 Input
	Output                MandateOutput
	// Encoded is the packed encoding whose Keccak-256 is the order id.
	Encoded []byte
	// open is the calldata that opens the order, and abi its arguments: abi.encode of the order, including its outer offset word.
	open, abi []byte
}

// Input is what the sender gives. The token of a native input is the zero address.
type Input struct {
	Token  string
	Amount *big.Int
}

// MandateOutput is what the recipient gets. Addresses are left-padded to 32 bytes; the token of a native output is zero.
type MandateOutput struct {
	Oracle    [32]byte
	Settler   [32]byte
	ChainID   uint64
	Token     [32]byte
	Amount    *big.Int
	Recipient [32]byte
}

// ErrScheme is returned for the order of an intent that was recorded under a scheme that is no longer supported.
var ErrScheme = errors.New("the scheme of the intent's order is not supported any more")

// ID returns the order id: Keccak-256 of the packed encoding.
func (o *Order) ID() [32]byte { return crypto.Keccak256Hash(o.Encoded) }

// HasOrder reports whether an order executes the intent: it is a swap or bridge of a scheme that is supported. A transfer has the id of an
// order that is never opened.
func (i *Intent) HasOrder() bool {
	return i.Type != Transfer && i.Settlement.Scheme == registry.StandardOrder
}

// Order builds the order of an intent, or returns ErrScheme. The nonce is the intent's id as a 128-bit number, so an order seen on chain
// identifies its intent; see nonce.
func (i *Intent) Order() (*Order, error) {
	if i.Settlement.Scheme != registry.StandardOrder {
		return nil, fmt.Errorf("transfer %s: %w: %q", i.ID, ErrScheme, i.Settlement.Scheme)
	}
	origin, _ := i.Source.Account.Chain.Number()           // the registry has eip155 chains only
	destination, _ := i.Destination.Account.Chain.Number() // as above
	order := &Order{
		InputSettler: orZero(i.Settlement.InputSettler), User: i.Source.Account.Address,
		Nonce: i.nonce(), OriginChainID: origin,
		Expires:      uint32(i.Settlement.Expires.Unix()), //nolint:gosec // New rejects what does not fit
		FillDeadline: uint32(i.Deadline.Unix()),           //nolint:gosec // not after Expires
		InputOracle:  orZero(i.Settlement.InputOracle),
		Input:        Input{Token: orZero(tokenAddress(i.Source.Token)), Amount: i.Source.Amount},
		Output:       MandateOutput{ChainID: destination, Amount: i.Destination.Amount},
	}
	err := errors.Join(
		putAddress(order.Output.Oracle[:], i.Settlement.OutputOracle),
		putAddress(order.Output.Settler[:], i.Settlement.OutputSettler),
		putAddress(order.Output.Token[:], tokenAddress(i.Destination.Token)),
		putAddress(order.Output.Recipient[:], i.Destination.Account.Address),
	)
	if err == nil {
		err = order.encode()
	}
	if err != nil {
		return nil, fmt.Errorf("encode the order of transfer %s: %w", i.ID, err)
	}
	return order, nil
}

// submittedNonceBits are the random bits at the end of an intent's id, its rand_b (RFC 9562 section 5.7).
const submittedNonceBits = 62

// nonce is the nonce of an intent's order: its id, or the end of it where the order is handed to a solver, whose API takes 64 bits. No other order
// has so short a nonce: whoever sees one opened can post it to that API with a signature of their own, after which the solver never fills it.
func (i *Intent) nonce() *big.Int {
	if !i.Signing.Submit {
		return new(big.Int).SetBytes(i.ID[:])
	}
	return new(big.Int).SetUint64(binary.BigEndian.Uint64(i.ID[8:]) & (1<<submittedNonceBits - 1))
}

func orZero(address string) string {
	if address == "" {
		return caip.ZeroAddress
	}
	return address
}

// The words of an order with one input and one output, both of whose bytes are empty.
const (
	orderHead   = 8                                  // one word per field
	inputWords  = 1 + 2                              // length, then token and amount
	outputWords = 8 + 2                              // the fields, then the lengths of callbackData and context
	listWords   = 1 + 1 + outputWords                // length, the output's offset, the output
	orderWords  = orderHead + inputWords + listWords // without the outer offset
	// packedSize is the length of the packed encoding: abi.encode of the outputs has an outer offset word of its own.
	packedSize = word + 20 + 20 + word + 4 + 4 + 20 + word + word + listWords*word
)

// encode sets Encoded, open and abi, in one allocation. It does not use go-ethereum's encoder, which uses reflection and takes ten times as
// long.
func (o *Order) encode() error {
	const size = len(settlerOpen) + (1+orderWords)*word
	b := make([]byte, size, size+packedSize)
	copy(b, settlerOpen[:])
	o.open, o.abi = b[:size:size], b[len(settlerOpen):size:size]
	at := func(n int) []byte { return o.abi[n*word : (n+1)*word] }
	putUint(at(0), word) // the order's offset
	err := errors.Join(
		putAddress(at(1), o.User),
		putBig(at(2), o.Nonce),
		putAddress(at(6), o.InputOracle),
		putAddress(at(10), o.Input.Token),
		putBig(at(11), o.Input.Amount),
		putBig(at(18), o.Output.Amount),
	)
	if err != nil {
		return err
	}
	putUint(at(3), o.OriginChainID)
	putUint(at(4), uint64(o.Expires))
	putUint(at(5), uint64(o.FillDeadline))
	putUint(at(7), orderHead*word)              // the offset of inputs
	putUint(at(8), (orderHead+inputWords)*word) // the offset of outputs
	putUint(at(9), 1)                           // one input
	putUint(at(12), 1)                          // one output
	putUint(at(13), word)                       // the output's offset
	copy(at(14), o.Output.Oracle[:])
	copy(at(15), o.Output.Settler[:])
	putUint(at(16), o.Output.ChainID)
	copy(at(17), o.Output.Token[:])
	copy(at(19), o.Output.Recipient[:])
	putUint(at(20), 8*word) // the offset of callbackData
	putUint(at(21), 9*word) // the offset of context; the lengths of both, which follow, are zero
	o.Encoded, err = o.pack(b[size:])
	return err
}

// pack appends the packed encoding: abi.encodePacked of the fields with the Keccak-256 of the inputs, packed without their number, and
// abi.encode of the outputs.
func (o *Order) pack(b []byte) ([]byte, error) {
	var settler [word]byte
	if err := putAddress(settler[:], o.InputSettler); err != nil {
		return nil, err
	}
	words := func(from, to int) []byte { return o.abi[from*word : to*word] }
	address := func(w []byte) []byte { return w[word-20:] }
	b = append(b, words(3, 4)...) // originChainId
	b = append(b, address(settler[:])...)
	b = append(b, address(words(1, 2))...) // user
	b = append(b, words(2, 3)...)          // nonce
	b = binary.BigEndian.AppendUint32(b, o.Expires)
	b = binary.BigEndian.AppendUint32(b, o.FillDeadline)
	b = append(b, address(words(6, 7))...) // inputOracle
	inputs := crypto.Keccak256Hash(words(10, 12))
	b = append(b, inputs[:]...)
	b = appendUint(b, word) // the outputs' offset
	return append(b, words(12, 1+orderWords)...), nil
}

// output returns abi.encode of the output without its outer offset word.
func (o *Order) output() []byte { return o.abi[len(o.abi)-outputWords*word:] }
