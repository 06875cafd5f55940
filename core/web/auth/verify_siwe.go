package auth

import (
	"errors"
	"net/http"
	"strings"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/siwe"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// verifySIWE answers POST /auth/siwe/verify: it signs in the signer of the message. The wallet in the body must be the one in the
// message.
func (s *Server) verifySIWE(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Message       string                 `json:"message"`
		Signature     string                 `json:"signature"`
		WalletAddress string                 `json:"walletAddress"`
		ChainID       route.Nullable[uint64] `json:"chainId"`
		Email         route.Nullable[string] `json:"email"` // better-auth's: ignored, as nothing proves it
	}](r)
	if err != nil {
		return err
	}
	message, err := readWalletMessage(request.Message, request.WalletAddress, request.ChainID.Value)
	if err != nil {
		return err
	}
	in, err := s.Identity.Persons.SignInWithEthereum(r.Context(), s.client(r), request.Message, request.Signature)
	if err != nil {
		return err
	}
	s.cookie.SignIn(w, in)
	type user struct {
		ID            string `json:"id"`
		WalletAddress string `json:"walletAddress"`
		ChainID       uint64 `json:"chainId"`
	}
	return route.WriteJSON(w, http.StatusOK, struct {
		Token   *string `json:"token"`
		Success bool    `json:"success"`
		User    user    `json:"user"`
	}{Success: true, User: user{ID: in.Account.ID.String(), WalletAddress: message.Address, ChainID: message.ChainID}})
}

// readWalletMessage parses the message of a wallet, which must have the address and chain of the request; chainID may be nil.
func readWalletMessage(text, address string, chainID *uint64) (*siwe.Message, error) {
	if err := checkChainID(chainID); err != nil {
		return nil, err
	}
	wallet, err := account.NewWalletIdentity(address)
	if err != nil {
		return nil, err
	}
	message, err := siwe.Parse(text)
	if syntax, ok := errors.AsType[*siwe.SyntaxError](err); ok {
		return nil, route.Invalid(wire.Issue{Path: "/message", Message: "is no ERC-4361 message: " + syntax.Error()})
	}
	if err != nil {
		return nil, err
	}
	if strings.ToLower(message.Address) != wallet.Subject || chainID != nil && *chainID != message.ChainID {
		return nil, identity.ErrWalletSite
	}
	return message, nil
}
