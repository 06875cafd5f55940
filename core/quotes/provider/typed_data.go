package provider

import (
	"encoding/hex"
	"errors"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The types of orders that a quote can show: one that the user's transaction opens, and those that a signature opens, by Permit2 and by ERC-3009.
// Solvers that offer none of the first kind show what they would fill in the typed data of the others.
const (
	userOpenOrder = "oif-user-open-v0"
	escrowOrder   = "oif-escrow-v0"
	erc3009Order  = "oif-3009-v0"
)

// signedOrder are the members of an order that a signature opens.
type signedOrder struct {
	Type     string         `json:"type"`
	Payload  jsontext.Value `json:"payload"`
	Metadata jsontext.Value `json:"metadata"`
}

// offered returns the order of the typed data, nil where the quote shows no order.
func (s signedOrder) offered() *offeredOrder {
	var order offeredOrder
	var err error
	switch s.Type {
	case "":
		return nil
	case escrowOrder:
		order, err = decodeEscrow(s.Payload)
	case erc3009Order:
		order, err = decodeERC3009(s.Payload, s.Metadata)
	default:
		err = errTypedData
	}
	if err != nil {
		return &offeredOrder{unreadable: true}
	}
	return &order
}

var errTypedData = errors.New("is no typed data of an order")

// decodeEscrow decodes a Permit2 transfer whose witness is the order.
func decodeEscrow(payload jsontext.Value) (order offeredOrder, err error) {
	var p struct {
		Domain  typedDomain `json:"domain"`
		Message struct {
			Permitted sides[struct {
				Token  typedAddress `json:"token"`
				Amount typedNumber  `json:"amount"`
			}] `json:"permitted"`
			Spender  typedAddress `json:"spender"`
			Deadline typedNumber  `json:"deadline"`
			Witness  struct {
				User        typedAddress       `json:"user"`
				Expires     typedNumber        `json:"expires"`
				InputOracle typedAddress       `json:"inputOracle"`
				Outputs     sides[typedOutput] `json:"outputs"`
			} `json:"witness"`
		} `json:"message"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return order, err
	}
	m := p.Message
	order = offeredOrder{chain: "eip155:" + p.Domain.ChainID.String(), settler: m.Spender.plain(), order: standardOrder{
		User: m.Witness.User.address(), OriginChainId: p.Domain.ChainID.big(), Expires: m.Witness.Expires.seconds(), FillDeadline: m.Deadline.seconds(),
		InputOracle: m.Witness.InputOracle.address(),
	}}
	for _, in := range m.Permitted {
		order.order.Inputs = append(order.order.Inputs, [2]*big.Int{in.Token.big(), in.Amount.big()})
	}
	order.order.Outputs = mandateOutputs(m.Witness.Outputs)
	return order, nil
}

// decodeERC3009 decodes an authorization of a token, which commits to the order by its id alone: the rest of the order is in the metadata.
func decodeERC3009(payload, metadata jsontext.Value) (order offeredOrder, err error) {
	var p struct {
		Domain  typedDomain `json:"domain"`
		Message struct {
			From  typedAddress `json:"from"`
			To    typedAddress `json:"to"`
			Value typedNumber  `json:"value"`
		} `json:"message"`
	}
	var m struct {
		OriginChainID typedNumber        `json:"originChainId"`
		Expires       typedNumber        `json:"expires"`
		FillDeadline  typedNumber        `json:"fillDeadline"`
		InputOracle   typedAddress       `json:"inputOracle"`
		Outputs       sides[typedOutput] `json:"outputs"`
	}
	if err := errors.Join(json.Unmarshal(payload, &p), json.Unmarshal(metadata, &m)); err != nil {
		return order, err
	}
	return offeredOrder{chain: "eip155:" + p.Domain.ChainID.String(), settler: p.Message.To.plain(), order: standardOrder{
		User: p.Message.From.address(), OriginChainId: m.OriginChainID.big(), Expires: m.Expires.seconds(), FillDeadline: m.FillDeadline.seconds(),
		InputOracle: m.InputOracle.address(), Inputs: [][2]*big.Int{{p.Domain.VerifyingContract.big(), p.Message.Value.big()}},
		Outputs: mandateOutputs(m.Outputs),
	}}, nil
}

type typedDomain struct {
	ChainID           typedNumber  `json:"chainId"`
	VerifyingContract typedAddress `json:"verifyingContract"`
}

// typedOutput has the members of both kinds: an ERC-3009 order's metadata name token and recipient asset and receiver.
type typedOutput struct {
	Oracle    typedAddress `json:"oracle"`
	Settler   typedAddress `json:"settler"`
	ChainID   typedNumber  `json:"chainId"`
	Token     typedAddress `json:"token"`
	Asset     typedAddress `json:"asset"`
	Amount    typedNumber  `json:"amount"`
	Recipient typedAddress `json:"recipient"`
	Receiver  typedAddress `json:"receiver"`
	Context   string       `json:"context"`
}

func mandateOutputs(outputs []typedOutput) (all []mandateOutput) {
	for _, o := range outputs {
		either := func(a, b typedAddress) typedAddress {
			if b.set {
				return b
			}
			return a
		}
		context, _ := hex.DecodeString(strings.TrimPrefix(o.Context, "0x"))
		all = append(all, mandateOutput{
			Oracle: o.Oracle.word, Settler: o.Settler.word, ChainId: o.ChainID.big(), Token: either(o.Token, o.Asset).word, Amount: o.Amount.big(),
			Recipient: either(o.Recipient, o.Receiver).word, Context: context,
		})
	}
	return all
}

// typedNumber is a whole number below 2^256, as a JSON number or a text. A missing one is negative, which no number of an order is.
type typedNumber struct{ number *big.Int }

// UnmarshalJSON implements json.Unmarshaler.
func (n *typedNumber) UnmarshalJSON(text []byte) (err error) {
	n.number, err = parseAmount(strings.Trim(string(text), `"`))
	return err
}

func (n typedNumber) big() *big.Int {
	if n.number == nil {
		return big.NewInt(-1)
	}
	return n.number
}

func (n typedNumber) String() string { return n.big().String() }

// seconds are those of a timestamp of an order, at most 32 bits.
func (n typedNumber) seconds() uint32 {
	if number := n.big(); number.BitLen() <= 32 {
		return uint32(number.Uint64()) //nolint:gosec // the length is checked
	}
	return 0
}

// typedAddress is an address of 20 bytes, of 32 bytes that begin with zeros, or of EIP-7930, whose chain a member beside it has too.
type typedAddress struct {
	word [32]byte
	set  bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *typedAddress) UnmarshalJSON(value []byte) error {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return err
	}
	if _, plain, err := parseInteroperable(text); err == nil {
		text = plain
	}
	raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil || len(raw) != common.AddressLength && len(raw) != len(a.word) {
		return errTypedData
	}
	copy(a.word[len(a.word)-len(raw):], raw)
	a.set = true
	return nil
}

// address is the zero address for one that is missing or longer than 20 bytes.
func (a typedAddress) address() common.Address {
	if number := a.big(); number.BitLen() > 8*common.AddressLength {
		return common.Address{}
	}
	return common.BytesToAddress(a.word[:])
}

func (a typedAddress) plain() string { return a.address().Hex() }

func (a typedAddress) big() *big.Int { return new(big.Int).SetBytes(a.word[:]) }
