package provider

import (
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/go-json-experiment/json"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// The body of a signed order (oif-solver 926e39a). Its numbers are those that the solver parses as numbers, and its texts the others; it derives the
// types of the message from the primary type.
type (
	postedOrder struct {
		Order struct {
			Type     string          `json:"type"`
			Payload  postedPayload   `json:"payload"`
			Metadata *postedMetadata `json:"metadata,omitempty"`
		} `json:"order"`
		Signature string `json:"signature"`
	}
	postedPayload struct {
		SignatureType string       `json:"signatureType"`
		Domain        postedDomain `json:"domain"`
		PrimaryType   string       `json:"primaryType"`
		Message       any          `json:"message"`
	}
	postedDomain struct {
		Name              string `json:"name"`
		Version           string `json:"version,omitempty"`
		ChainID           uint64 `json:"chainId"`
		VerifyingContract string `json:"verifyingContract"`
	}
	postedPermit struct {
		Permitted []postedTokens `json:"permitted"`
		Spender   string         `json:"spender"`
		Nonce     string         `json:"nonce"`
		Deadline  string         `json:"deadline"`
		Witness   postedWitness  `json:"witness"`
	}
	postedTokens struct {
		Token  string `json:"token"`
		Amount string `json:"amount"`
	}
	postedWitness struct {
		User        string             `json:"user"`
		Expires     uint32             `json:"expires"`
		InputOracle string             `json:"inputOracle"`
		Outputs     []postedPermitSide `json:"outputs"`
	}
	postedPermitSide struct {
		Oracle       string `json:"oracle"`
		Settler      string `json:"settler"`
		ChainID      uint64 `json:"chainId"`
		Token        string `json:"token"`
		Amount       string `json:"amount"`
		Recipient    string `json:"recipient"`
		CallbackData string `json:"callbackData"`
		Context      string `json:"context"`
	}
	postedAuthorization struct {
		From        string `json:"from"`
		To          string `json:"to"`
		Value       string `json:"value"`
		ValidAfter  uint32 `json:"validAfter"`
		ValidBefore uint32 `json:"validBefore"`
		Nonce       string `json:"nonce"`
	}
	// postedMetadata is the order of an authorization, which commits to it by its id alone. User, asset and receiver are interoperable addresses.
	postedMetadata struct {
		User         string         `json:"user"`
		Nonce        uint64         `json:"nonce"`
		Expires      uint32         `json:"expires"`
		FillDeadline uint32         `json:"fillDeadline"`
		InputOracle  string         `json:"inputOracle"`
		Inputs       []postedInput  `json:"inputs"`
		Outputs      []postedOutput `json:"outputs"`
	}
	postedInput struct {
		ChainID uint64 `json:"chainId"`
		Asset   string `json:"asset"`
		Amount  string `json:"amount"`
	}
	postedOutput struct {
		ChainID  uint64 `json:"chainId"`
		Asset    string `json:"asset"`
		Amount   string `json:"amount"`
		Receiver string `json:"receiver"`
		Oracle   string `json:"oracle"`
		Settler  string `json:"settler"`
	}
)

// encode returns the body that hands an order to a solver.
func encode(s *transfer.SignedOrder) ([]byte, error) {
	domain := s.TypedData.Domain()
	var p postedOrder
	p.Signature = hexutil.Encode(s.Signature)
	p.Order.Payload = postedPayload{
		SignatureType: "eip712", PrimaryType: s.TypedData.PrimaryType(),
		Domain: postedDomain{domain.Name, domain.Version, domain.ChainID, domain.Contract},
	}
	if s.Scheme == wire.Permit2 {
		p.Order.Type, p.Order.Payload.Message = escrowOrder, permitOf(s.Order)
		return json.Marshal(p)
	}
	metadata, err := metadataOf(s.Order)
	if err != nil {
		return nil, err
	}
	p.Order.Type, p.Order.Payload.Message, p.Order.Metadata = erc3009Order, authorizationOf(s.Order), metadata
	return json.Marshal(p)
}

func permitOf(o *transfer.Order) postedPermit {
	return postedPermit{
		Permitted: []postedTokens{{o.Input.Token, o.Input.Amount.String()}}, Spender: o.InputSettler, Nonce: o.Nonce.String(),
		Deadline: new(big.Int).SetUint64(uint64(o.FillDeadline)).String(),
		Witness: postedWitness{o.User, o.Expires, o.InputOracle, []postedPermitSide{{
			hexutil.Encode(o.Output.Oracle[:]), hexutil.Encode(o.Output.Settler[:]), o.Output.ChainID, hexutil.Encode(o.Output.Token[:]),
			o.Output.Amount.String(), hexutil.Encode(o.Output.Recipient[:]), "0x", "0x",
		}}},
	}
}

func authorizationOf(o *transfer.Order) postedAuthorization {
	id := o.ID()
	return postedAuthorization{
		From: o.User, To: o.InputSettler, Value: o.Input.Amount.String(), ValidBefore: o.FillDeadline, Nonce: hexutil.Encode(id[:]),
	}
}

func metadataOf(o *transfer.Order) (*postedMetadata, error) {
	plain := func(word [32]byte) string { return common.BytesToAddress(word[:]).Hex() }
	origin, destination := caip.EIP155Chain(o.OriginChainID), caip.EIP155Chain(o.Output.ChainID)
	user, userErr := interoperable(origin, o.User)
	input, inputErr := interoperable(origin, o.Input.Token)
	output, outputErr := interoperable(destination, plain(o.Output.Token))
	receiver, receiverErr := interoperable(destination, plain(o.Output.Recipient))
	if err := errors.Join(userErr, inputErr, outputErr, receiverErr); err != nil {
		return nil, err
	}
	return &postedMetadata{
		User: user, Nonce: o.Nonce.Uint64(), Expires: o.Expires, FillDeadline: o.FillDeadline, InputOracle: o.InputOracle,
		Inputs: []postedInput{{o.OriginChainID, input, o.Input.Amount.String()}},
		Outputs: []postedOutput{{
			o.Output.ChainID, output, o.Output.Amount.String(), receiver, plain(o.Output.Oracle), plain(o.Output.Settler),
		}},
	}, nil
}
